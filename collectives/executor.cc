#include "collectives/executor.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "collectives/landing_window.h"
#include "collectives/progress.h"
#include "collectives/schedule/print.h"
#include "core/check.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

constexpr int kNamedWaits = 4;  // in the verdict of a deadline

// One call. Lives until its last callback has come: callbacks hold plain pointers, small enough to
// be stored without an allocation.
class Run {
 public:
  Run(const ExecutorDeps& deps, const ProcessGroup& group, const CollectiveCall& call,
      FailedFn failed, DoneFn done)
      : deps_(deps),
        group_(group),
        call_(call),
        plan_(call.plan),
        buffers_(call.plan, call.buffers, call.landings),
        failed_(std::move(failed)),
        done_(std::move(done)),
        progress_(plan_),
        receives_(plan_.ops.size()),
        landings_(call.landings) {}

  void Begin(std::unique_ptr<Run> self) {
    self_ = std::move(self);
    entered_ = deps_.loop.Now();
    timer_ = deps_.loop.RunAt(call_.deadline, [this] { OnDeadline(); });
    Advance();
  }

 private:
  struct Receive {
    bool posted = false;        // the transport knows where the message goes
    bool landed = false;        // it is there
    transport::Buffer landing;  // kRecvReduce, while posted and not reduced
  };

  const Op& OpAt(OpIndex i) const { return plan_.at(i).op; }
  Receive& ReceiveAt(OpIndex i) { return receives_[static_cast<std::size_t>(i)]; }
  compute::TensorView ChunksOf(OpIndex i) const {
    return buffers_.View(OpAt(i).chunk, OpAt(i).count);
  }

  // Begins all that may begin. What callbacks within make possible is left to the outer call.
  void Advance() {
    if (advancing_) {
      return;
    }
    advancing_ = true;
    while (failure_.ok()) {
      PostAhead();
      if (const auto landable = progress_.TakeLandable()) {
        Post(*landable);
      } else if (const auto startable = progress_.TakeStartable()) {
        Start(*startable);
      } else {
        break;
      }
    }
    advancing_ = false;
    EndIfOver();
  }

  void Start(OpIndex i) {
    switch (OpAt(i).kind) {
      case OpKind::kSend:
        return Send(i);
      case OpKind::kRecv:
      case OpKind::kRecvReduce:
        return ReceiveAt(i).landed ? UseMessage(i) : PostIfDue(i);
      case OpKind::kCopy:
        return Copy(i);
      case OpKind::kReduce:
        return Reduce(i, buffers_.View(OpAt(i).source, OpAt(i).count));
    }
  }

  void Finish(OpIndex i) {
    progress_.Finish(i);
    left_ = deps_.loop.Now();
    if (const OpIndex next = plan_.at(i).next_reduction; next >= 0 && progress_.started(next)) {
      PostIfDue(next);
    }
  }

  void Send(OpIndex i) {
    const compute::TensorView chunks = ChunksOf(i);
    ++under_way_;
    deps_.transport.Send(PeerOf(i), EnvelopeOf(i), {chunks.data, chunks.byte_count()},
                         [this, i](const absl::Status& status) { OnSent(i, status); });
  }

  // An overwriting receive lands in its chunks, a reducing one in a buffer beside them.
  void Post(OpIndex i) {
    compute::TensorView into = ChunksOf(i);
    if (OpAt(i).kind == OpKind::kRecvReduce) {
      ReceiveAt(i).landing = landings_.Take(into.byte_count(), into.data != nullptr);
      into.data = ReceiveAt(i).landing.data();
    }
    ReceiveAt(i).posted = true;
    ++under_way_;
    deps_.transport.Recv(PeerOf(i), EnvelopeOf(i), {into.data, into.byte_count()},
                         [this, i](const absl::Status& status) { OnReceived(i, status); });
  }

  // Receives that reduce, in list order, as far as the landing buffers allow.
  void PostAhead() {
    for (; next_reduction_ < plan_.reductions.size(); ++next_reduction_) {
      const OpIndex i = plan_.reductions[next_reduction_];
      if (ReceiveAt(i).posted) {
        continue;
      }
      if (!landings_.Fits(ChunksOf(i).byte_count())) {
        return;
      }
      Post(i);
    }
  }

  // The oldest started receive of a peer and channel is posted even beyond what the landing buffers
  // allow. That is enough for a proved schedule to go on: the message before was sent before, so
  // its send waits for nothing that this one brings.
  void PostIfDue(OpIndex i) {
    const OpIndex previous = plan_.at(i).previous_reduction;
    if (!ReceiveAt(i).posted && (previous < 0 || progress_.finished(previous))) {
      Post(i);
    }
  }

  // The message of a started receive is here.
  void UseMessage(OpIndex i) {
    if (OpAt(i).kind == OpKind::kRecv) {
      Finish(i);
    } else {
      Reduce(i, ChunkedBuffers::At(ChunksOf(i), ReceiveAt(i).landing.data()));
    }
  }

  void Reduce(OpIndex i, const compute::TensorView& source) {
    ++under_way_;
    deps_.reducer.Reduce(call_.op, ChunksOf(i), source,
                         [this, i](const absl::Status& status) { OnReduced(i, status); });
  }

  void Copy(OpIndex i) {
    const compute::TensorView source = buffers_.View(OpAt(i).source, OpAt(i).count);
    if (source.data != nullptr) {
      std::copy_n(source.data, source.byte_count(), ChunksOf(i).data);
    }
    Finish(i);
  }

  void OnSent(OpIndex i, const absl::Status& status) {
    if (Ended(i, status)) {
      last_byte_out_ = deps_.loop.Now();
      Finish(i);
    }
    Advance();
  }

  void OnReceived(OpIndex i, const absl::Status& status) {
    if (Ended(i, status)) {
      first_byte_in_ = first_byte_in_.value_or(deps_.loop.Now());
      ReceiveAt(i).landed = true;
      if (progress_.started(i)) {
        UseMessage(i);
      }
    }
    Advance();
  }

  void OnReduced(OpIndex i, const absl::Status& status) {
    if (OpAt(i).kind == OpKind::kRecvReduce) {
      landings_.Give(std::move(ReceiveAt(i).landing), ChunksOf(i).byte_count());
    }
    if (Ended(i, status)) {
      Finish(i);
    }
    Advance();
  }

  // An operation under way has ended. True if the run goes on.
  bool Ended(OpIndex i, const absl::Status& status) {
    --under_way_;
    if (!status.ok() && failure_.ok()) {
      Fail(Annotate(status, absl::StrFormat("%s, op %d (%s), %s", NameOfCall(), i, PrintOp(OpAt(i)),
                                            NameOfPeer(i))));
    }
    return failure_.ok();
  }

  void OnDeadline() {
    timer_ = TimerId::kNone;
    if (!failure_.ok() || progress_.unfinished() == 0) {
      return;
    }
    const std::chrono::duration<double> waited = deps_.loop.Now() - entered_;
    Fail(DeadlineExceeded("%s: waited %g s for %s; %d of %d ops had finished", NameOfCall(),
                          waited.count(), PrintWaits(), progress_.size() - progress_.unfinished(),
                          progress_.size()));
    EndIfOver();
  }

  // "worker 2 (recv chunk 3 from rank 2, op 7), worker 1 (...) and 3 more".
  std::string PrintWaits() const {
    std::string waits;
    int count = 0;
    for (OpIndex i = 0; i < progress_.size(); ++i) {
      if (progress_.started(i) && !progress_.finished(i) && ++count <= kNamedWaits) {
        absl::StrAppendFormat(&waits, "%s%s (%s, op %d)", waits.empty() ? "" : ", ", NameOfPeer(i),
                              PrintOp(OpAt(i)), i);
      }
    }
    return count > kNamedWaits ? absl::StrFormat("%s and %d more", waits, count - kNamedWaits)
                               : waits;
  }

  void Fail(absl::Status status) {
    failure_ = std::move(status);
    if (failed_) {
      failed_(failure_);
    }
  }

  // Leaves through the loop, so that no caller further up meets a run that is gone.
  void EndIfOver() {
    if (self_ == nullptr || under_way_ > 0 || (failure_.ok() && progress_.unfinished() > 0)) {
      return;
    }
    deps_.loop.Cancel(timer_);
    deps_.loop.Post([self = std::move(self_)]() mutable { End(std::move(self)); });
  }

  // The run is gone before `done` runs: what it borrowed need not live longer.
  static void End(std::unique_ptr<Run> run) {
    for (Receive& receive : run->receives_) {
      run->call_.landings.Give(std::move(receive.landing));
    }
    if (run->failure_.ok()) {
      run->Trace();
    }
    DoneFn done = std::move(run->done_);
    absl::Status status = std::move(run->failure_);
    run.reset();
    done(std::move(status));
  }

  void Trace() {
    CollectiveSpan span;
    span.rank = group_.members[static_cast<std::size_t>(group_.my_rank)];
    span.group = group_.id;
    span.sequence = call_.sequence;
    span.algorithm = plan_.algorithm;
    span.step = call_.step;
    span.bucket = call_.bucket;
    span.bytes = call_.buffers.input.byte_count();
    if (plan_.output_chunks > 0) {
      span.bytes = std::max(span.bytes, call_.buffers.output.byte_count());
    }
    span.entered = entered_;
    span.left = left_.value_or(entered_);
    span.first_byte_in = first_byte_in_.value_or(span.left);
    span.last_byte_out = last_byte_out_.value_or(span.left);
    deps_.trace.Record(span);
  }

  Endpoint PeerOf(OpIndex i) const {
    return {Role::kWorker, group_.members[static_cast<std::size_t>(OpAt(i).peer)]};
  }
  std::string NameOfPeer(OpIndex i) const {
    return IsLocal(OpAt(i).kind) ? "its own memory" : NameOf(PeerOf(i));
  }

  transport::Envelope EnvelopeOf(OpIndex i) const {
    return {.generation = group_.generation,
            .group = group_.id,
            .sequence = call_.sequence,
            .lane = static_cast<std::uint32_t>(OpAt(i).channel),
            .part = plan_.at(i).part};
  }

  // "all-reduce 17 of group 0".
  std::string NameOfCall() const {
    return absl::StrFormat("%s %d of group %d", NameOf(plan_.collective), call_.sequence,
                           group_.id);
  }

  const ExecutorDeps deps_;
  const ProcessGroup& group_;
  const CollectiveCall call_;
  const RankPlan& plan_;
  const ChunkedBuffers buffers_;
  FailedFn failed_;
  DoneFn done_;

  Progress progress_;
  std::vector<Receive> receives_;  // by op
  LandingWindow landings_;         // posted and not reduced
  bool advancing_ = false;
  std::size_t next_reduction_ = 0;  // of plan_.reductions: all before it are posted
  std::int64_t under_way_ = 0;      // callbacks still to come
  absl::Status failure_;
  TimerId timer_ = TimerId::kNone;
  std::unique_ptr<Run> self_;

  Nanos entered_{};
  std::optional<Nanos> first_byte_in_;
  std::optional<Nanos> last_byte_out_;
  std::optional<Nanos> left_;
};

}  // namespace

void Execute(const ExecutorDeps& deps, const ProcessGroup& group, const CollectiveCall& call,
             FailedFn failed, DoneFn done) {
  RANKLAB_CHECK(call.plan.rank == group.my_rank &&
                    call.plan.group_size == static_cast<int>(group.members.size()),
                "a plan of rank %d of %d for rank %d of %d", call.plan.rank, call.plan.group_size,
                group.my_rank, group.members.size());
  if (absl::Status status = ChunkedBuffers::Check(call.plan, call.buffers); !status.ok()) {
    if (failed) {
      failed(status);
    }
    deps.loop.Post([done = std::move(done), status]() mutable { done(std::move(status)); });
    return;
  }
  auto run = std::make_unique<Run>(deps, group, call, std::move(failed), std::move(done));
  Run& started = *run;
  started.Begin(std::move(run));
}

}  // namespace ranklab::collectives
