#include "coordinator/member_session.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>

#include "coordinator/channel.h"
#include "coordinator/clock_prober.h"
#include "coordinator/grpc_status.h"
#include "coordinator/write_queue.h"
#include "core/log.h"
#include "core/seconds.h"
#include "core/status.h"
#include "protos/coordinator.grpc.pb.h"

namespace ranklab::coordinator {
namespace {

// A session lasts as long as its process; the deadline only says that nothing waits for ever.
constexpr std::chrono::hours kSessionMost(24);
constexpr Nanos kProbeEvery = std::chrono::milliseconds(500);
// A new step is told at once, but no more often than this.
constexpr Nanos kBeatAtMostEvery = std::chrono::milliseconds(20);
// A timer this late means that this process did not run: its own silence.
constexpr Nanos kOwnStall = std::chrono::seconds(1);

}  // namespace

// Everything on the loop, but for what the mutex guards and gRPC's reactions, which only post.
class MemberSession::Core final
    : public grpc::ClientBidiReactor<v1::MemberMessage, v1::CoordinatorMessage>,
      public std::enable_shared_from_this<Core> {
 public:
  Core(EventLoop& loop, SessionOptions options, SessionEvents events)
      : loop_(loop),
        options_(std::move(options)),
        events_(std::move(events)),
        stub_(v1::Coordinator::NewStub(OpenChannel(options_.coordinator))),
        prober_(std::make_shared<ClockProber>(loop_, *stub_, options_.clock,
                                              [this] { last_heard_ = loop_.Now(); })) {}

  void Begin();
  void Send(v1::MemberMessage message);
  void SetProgress(std::uint32_t generation, Step step, std::string phase);
  ClockOffset clock() const { return prober_->clock(); }
  void CloseAndWait();

  void OnWriteDone(bool ok) override;
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  void Post(Task task);
  TimerId After(Nanos delay, Task task);
  void Pump();
  void Received(v1::CoordinatorMessage message);
  void Joined(std::uint64_t member);
  void Beat();
  void BeatEarly();
  void SetSuspectAfter(Nanos suspect_after);
  void WatchCoordinator(Nanos due);
  void SessionDone(const grpc::Status& status);
  void End(absl::Status why, int exit_code);
  void CancelCalls();

  EventLoop& loop_;
  SessionOptions options_;
  SessionEvents events_;
  std::unique_ptr<v1::Coordinator::Stub> stub_;
  grpc::ClientContext context_;
  v1::CoordinatorMessage incoming_;
  WriteQueue<v1::MemberMessage> queue_;
  bool begun_ = false;
  bool joined_ = false;
  bool ended_ = false;   // events_.ended has been called
  bool closed_ = false;  // the session is being destroyed, or has ended: touch nothing
  bool held_ = false;    // gRPC waits for our RemoveHold
  TimerId join_timer_ = TimerId::kNone;
  TimerId beat_timer_ = TimerId::kNone;
  TimerId watch_timer_ = TimerId::kNone;
  Nanos last_beat_{};
  Nanos beat_due_{};
  Nanos last_heard_{};
  std::shared_ptr<ClockProber> prober_;
  std::atomic<bool> beat_asked_{false};

  mutable absl::Mutex mutex_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;  // gRPC holds the session's call
  std::uint32_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  Step step_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string phase_ ABSL_GUARDED_BY(mutex_);
};

void MemberSession::Core::Post(Task task) {
  loop_.Post([self = shared_from_this(), task = std::move(task)]() mutable {
    if (!self->closed_) {
      task();
    }
  });
}

TimerId MemberSession::Core::After(Nanos delay, Task task) {
  return loop_.RunAt(loop_.Now() + delay,
                     [self = shared_from_this(), task = std::move(task)]() mutable {
                       if (!self->closed_) {
                         task();
                       }
                     });
}

// ---- the session's stream -------------------------------------------------------------------

void MemberSession::Core::Begin() {
  if (closed_) {
    return;
  }
  begun_ = true;
  context_.set_deadline(std::chrono::system_clock::now() + kSessionMost);
  context_.set_wait_for_ready(true);  // the coordinator may start after us; join_timeout ends it
  {
    absl::MutexLock lock(&mutex_);
    open_ = true;
  }
  stub_->async()->Session(&context_, this);
  held_ = true;
  AddHold();  // writes start from the loop, outside gRPC's reactions
  StartRead(&incoming_);
  StartCall();
  last_heard_ = loop_.Now();
  v1::MemberMessage message;
  *message.mutable_join() = options_.join;
  Send(std::move(message));
  join_timer_ = After(options_.join_timeout, [this] {
    End(DeadlineExceeded("no coordinator answers at %s within %.1f s", options_.coordinator,
                         SecondsOf(options_.join_timeout)),
        3);
  });
}

void MemberSession::Core::Send(v1::MemberMessage message) {
  if (!closed_) {
    queue_.Push(std::move(message));
    Pump();
  }
}

void MemberSession::Core::Pump() {
  if (const v1::MemberMessage* next = begun_ && held_ ? queue_.Next() : nullptr) {
    StartWrite(next);
  }
}

void MemberSession::Core::OnWriteDone(bool ok) {
  Post([this, ok] {
    queue_.Written();
    if (ok) {
      Pump();
    } else {
      queue_.Clear();  // OnDone says why
    }
  });
}

void MemberSession::Core::OnReadDone(bool ok) {
  if (!ok) {
    Post([this] {  // nothing more comes: let gRPC finish the call
      if (std::exchange(held_, false)) {
        RemoveHold();
      }
    });
    return;
  }
  Post([this] {
    v1::CoordinatorMessage message = std::move(incoming_);
    StartRead(&incoming_);
    Received(std::move(message));
  });
}

void MemberSession::Core::Received(v1::CoordinatorMessage message) {
  last_heard_ = loop_.Now();
  switch (message.kind_case()) {
    case v1::CoordinatorMessage::kJoined:
      Joined(message.joined().member());
      break;
    case v1::CoordinatorMessage::kAssignment:
      SetSuspectAfter(Nanos(message.assignment().suspect_after_ns()));
      events_.assigned(message.assignment());
      break;
    case v1::CoordinatorMessage::kGo:
      events_.go(message.go().generation());
      break;
    case v1::CoordinatorMessage::kRelease:
      events_.released(message.release());
      break;
    case v1::CoordinatorMessage::kInject:
      events_.inject(message.inject());
      break;
    case v1::CoordinatorMessage::kAbort:
      events_.aborted(message.abort());
      break;
    case v1::CoordinatorMessage::kGone:
      events_.gone(message.gone());
      break;
    case v1::CoordinatorMessage::kDismiss:
      Log(LogLevel::kInfo, "dismissed: %s", message.dismiss().reason());
      End(absl::OkStatus(), message.dismiss().exit_code());
      break;
    case v1::CoordinatorMessage::KIND_NOT_SET:
      Log(LogLevel::kWarning, "the coordinator sent a message of an unknown kind");
      break;
  }
}

void MemberSession::Core::OnDone(const grpc::Status& status) {
  const auto keep = shared_from_this();  // beyond the waiter's waking
  Post([this, status] { SessionDone(status); });
  absl::MutexLock lock(&mutex_);
  open_ = false;
}

void MemberSession::Core::SessionDone(const grpc::Status& status) {
  const absl::Status why = FromGrpc(status);
  if (absl::IsAlreadyExists(why) || absl::IsFailedPrecondition(why) ||
      absl::IsInvalidArgument(why)) {
    End(why, 2);
  } else {
    End(Unavailable("the coordinator at %s was lost: %s", options_.coordinator,
                    why.ok() ? "it ended the session" : MessageOf(why)),
        3);
  }
}

void MemberSession::Core::End(absl::Status why, int exit_code) {
  if (std::exchange(ended_, true)) {
    return;
  }
  const auto keep = shared_from_this();  // the session may be destroyed by the event
  CancelCalls();
  events_.ended(std::move(why), exit_code);
}

// ---- heartbeats and the clock ---------------------------------------------------------------

void MemberSession::Core::Joined(std::uint64_t member) {
  if (std::exchange(joined_, true)) {
    return;
  }
  loop_.Cancel(join_timer_);
  const auto keep = shared_from_this();
  events_.joined(member);
  if (!closed_) {
    beat_due_ = loop_.Now();
    Beat();
    prober_->Begin();
    WatchCoordinator(loop_.Now());
  }
}

void MemberSession::Core::Beat() {
  const Nanos now = loop_.Now();
  v1::MemberMessage message;
  v1::Heartbeat& heartbeat = *message.mutable_heartbeat();
  beat_asked_ = false;
  {
    absl::MutexLock lock(&mutex_);
    heartbeat.set_generation(generation_);
    heartbeat.set_step(step_);
    heartbeat.set_phase(phase_);
  }
  const ClockOffset clock = prober_->clock();
  heartbeat.set_clock_offset_ns(clock.offset.count());
  heartbeat.set_clock_residual_ns(clock.residual.count());
  heartbeat.set_loop_lag_ns(std::max(Nanos(0), now - beat_due_).count());
  last_beat_ = now;
  beat_due_ = now + options_.heartbeat_every;
  beat_timer_ = After(options_.heartbeat_every, [this] { Beat(); });
  Send(std::move(message));
}

void MemberSession::Core::SetProgress(std::uint32_t generation, Step step, std::string phase) {
  bool new_step = false;
  {
    absl::MutexLock lock(&mutex_);
    new_step = generation != generation_ || step != step_;
    generation_ = generation;
    step_ = step;
    phase_ = std::move(phase);
  }
  if (new_step && !beat_asked_.exchange(true)) {
    Post([this] { BeatEarly(); });
  }
}

void MemberSession::Core::BeatEarly() {
  if (!joined_) {
    beat_asked_ = false;
    return;
  }
  loop_.Cancel(beat_timer_);
  const Nanos due = std::max(loop_.Now(), last_beat_ + kBeatAtMostEvery);
  beat_due_ = due;
  beat_timer_ = After(due - loop_.Now(), [this] { Beat(); });
}

void MemberSession::Core::SetSuspectAfter(Nanos suspect_after) {
  if (suspect_after > Nanos::zero()) {
    options_.suspect_after = suspect_after;
    // Four answers may be missed before silence is suspected.
    prober_->SetLongestPause(std::min(kProbeEvery, suspect_after / 4));
  }
}

// A coordinator that answers no probe and sends nothing has fallen silent, though its connection
// may stand.
void MemberSession::Core::WatchCoordinator(Nanos due) {
  const Nanos now = loop_.Now();
  if (now - due > kOwnStall) {
    last_heard_ = now;
  }
  if (now - last_heard_ >= options_.suspect_after) {
    End(Unavailable("the coordinator at %s was lost: no answer for %.1f s", options_.coordinator,
                    SecondsOf(now - last_heard_)),
        3);
    return;
  }
  const Nanos next = now + options_.heartbeat_every;
  watch_timer_ = After(options_.heartbeat_every, [this, next] { WatchCoordinator(next); });
}

// ---- the end --------------------------------------------------------------------------------

void MemberSession::Core::CancelCalls() {
  closed_ = true;
  for (const TimerId timer : {join_timer_, beat_timer_, watch_timer_}) {
    loop_.Cancel(timer);
  }
  if (begun_) {
    context_.TryCancel();
  }
  prober_->Cancel();
  if (std::exchange(held_, false)) {
    RemoveHold();
  }
}

void MemberSession::Core::CloseAndWait() {
  CancelCalls();
  prober_->Await();
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(
      +[](bool* open) { return !*open; }, &open_));
}

MemberSession::MemberSession(EventLoop& loop, SessionOptions options, SessionEvents events)
    : core_(std::make_shared<Core>(loop, std::move(options), std::move(events))) {
  loop.Post([core = core_] { core->Begin(); });
}

MemberSession::~MemberSession() { core_->CloseAndWait(); }

void MemberSession::Send(v1::MemberMessage message) { core_->Send(std::move(message)); }

void MemberSession::SetProgress(std::uint32_t generation, Step step, std::string phase) {
  core_->SetProgress(generation, step, std::move(phase));
}

Nanos MemberSession::clock_offset() const { return core_->clock().offset; }
Nanos MemberSession::clock_residual() const { return core_->clock().residual; }

}  // namespace ranklab::coordinator
