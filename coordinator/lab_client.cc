#include "coordinator/lab_client.h"

#include <thread>
#include <utility>

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>
#include <grpcpp/grpcpp.h>

#include "coordinator/channel.h"
#include "coordinator/grpc_status.h"
#include "core/seconds.h"
#include "core/status.h"
#include "protos/coordinator.grpc.pb.h"

namespace ranklab::coordinator {
namespace {

// A lab may take hours; the deadline only says that nothing waits for ever. Silence is found by
// asking for the clock meanwhile.
constexpr std::chrono::hours kLabMost(24);
constexpr std::chrono::seconds kCallMost(10);
constexpr Nanos kAskEvery = std::chrono::milliseconds(500);
// A process that was stopped finds the deadline of its question passed when it goes on, whatever
// the coordinator does: so many questions in a row go unanswered before that counts as silence.
constexpr int kAsksMost = 2;

void SetDeadline(grpc::ClientContext& context, std::chrono::nanoseconds within) {
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::system_clock::duration>(within));
}

}  // namespace

class LabClient::Core {
 public:
  explicit Core(std::string address)
      : address_(std::move(address)),
        channel_(OpenChannel(address_)),
        stub_(v1::Coordinator::NewStub(channel_)) {}

  absl::Status AwaitAnswer(Nanos timeout);
  absl::Status RunLab(const v1::RunLabRequest& request, Nanos suspect_after,
                      absl::FunctionRef<void(const v1::RunEvent&)> on_event);
  void Cancel();

  template <typename Request, typename Reply>
  absl::StatusOr<Reply> Call(grpc::Status (v1::Coordinator::Stub::*method)(grpc::ClientContext*,
                                                                           const Request&, Reply*),
                             const Request& request) {
    grpc::ClientContext context;
    SetDeadline(context, kCallMost);
    Reply reply;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &reply);
    if (status.ok()) {
      return reply;
    }
    return Explain(FromGrpc(status));
  }

 private:
  void WatchForSilence(grpc::ClientContext& lab, Nanos suspect_after);
  absl::Status Explain(const absl::Status& status) const;

  const std::string address_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Coordinator::Stub> stub_;

  absl::Mutex mutex_;
  grpc::ClientContext* running_ ABSL_GUARDED_BY(mutex_) = nullptr;
  grpc::ClientContext* asking_ ABSL_GUARDED_BY(mutex_) = nullptr;  // the watch's call
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool silent_ ABSL_GUARDED_BY(mutex_) = false;
};

// gRPC says "failed to connect to all addresses"; people want to know to whom.
absl::Status LabClient::Core::Explain(const absl::Status& status) const {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)
             ? Annotate(status, absl::StrFormat("the coordinator at %s does not answer", address_))
             : status;
}

absl::Status LabClient::Core::AwaitAnswer(Nanos timeout) {
  grpc::ClientContext context;
  SetDeadline(context, timeout);
  context.set_wait_for_ready(true);
  {
    absl::MutexLock lock(&mutex_);
    if (cancelled_) {
      return absl::CancelledError("cancelled");
    }
    running_ = &context;
  }
  v1::ReadClockReply reply;
  const grpc::Status status = stub_->ReadClock(&context, v1::ReadClockRequest(), &reply);
  absl::MutexLock lock(&mutex_);
  running_ = nullptr;
  if (cancelled_) {
    return absl::CancelledError("cancelled");
  }
  if (status.ok()) {
    return absl::OkStatus();
  }
  return DeadlineExceeded("no coordinator answers at %s within %.1f s", address_,
                          SecondsOf(timeout));
}

absl::Status LabClient::Core::RunLab(const v1::RunLabRequest& request, Nanos suspect_after,
                                     absl::FunctionRef<void(const v1::RunEvent&)> on_event) {
  grpc::ClientContext context;
  SetDeadline(context, kLabMost);
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(cancelled_, false)) {
      return absl::CancelledError("the lab was cancelled before it began");
    }
    running_ = &context;
    silent_ = false;
  }
  const auto reader = stub_->RunLab(&context, request);
  std::thread watch([this, &context, suspect_after] { WatchForSilence(context, suspect_after); });
  v1::RunEvent event;
  bool verdict = false;
  while (reader->Read(&event)) {
    verdict = verdict || event.has_verdict();
    on_event(event);
  }
  const grpc::Status ended = reader->Finish();
  bool cancelled = false;
  bool silent = false;
  {
    absl::MutexLock lock(&mutex_);
    running_ = nullptr;  // wakes the watch
    if (asking_ != nullptr) {
      asking_->TryCancel();
    }
    cancelled = std::exchange(cancelled_, false);
    silent = silent_;
  }
  watch.join();
  if (verdict) {
    return absl::OkStatus();
  }
  if (cancelled) {
    return absl::CancelledError("the lab was cancelled");
  }
  if (silent) {
    return Unavailable("the coordinator at %s was lost: no answer for %.1f s", address_,
                       SecondsOf(suspect_after));
  }
  const absl::Status why = FromGrpc(ended);
  if (why.ok() || absl::IsUnavailable(why)) {
    return Unavailable("the coordinator at %s was lost: %s", address_,
                       why.ok() ? "it ended the call without a verdict" : MessageOf(why));
  }
  return why;
}

void LabClient::Core::WatchForSilence(grpc::ClientContext& lab, Nanos suspect_after) {
  int unanswered = 0;
  const auto over = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return running_ == nullptr; };
  while (true) {
    grpc::ClientContext context;
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&over), absl::FromChrono(kAskEvery))) {
        return;
      }
      SetDeadline(context, suspect_after / kAsksMost);
      asking_ = &context;
    }
    v1::ReadClockReply reply;
    const grpc::Status answer = stub_->ReadClock(&context, v1::ReadClockRequest(), &reply);
    absl::MutexLock lock(&mutex_);
    asking_ = nullptr;
    if (answer.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) {
      unanswered = 0;  // it answers, or its connection is closed, which the lab's own call finds
      continue;
    }
    if (++unanswered < kAsksMost) {
      continue;
    }
    if (running_ != nullptr) {
      silent_ = true;
      lab.TryCancel();
    }
    return;
  }
}

void LabClient::Core::Cancel() {
  absl::MutexLock lock(&mutex_);
  cancelled_ = true;
  if (running_ != nullptr) {
    running_->TryCancel();
  }
}

LabClient::LabClient(const std::string& address) : core_(std::make_unique<Core>(address)) {}
LabClient::~LabClient() = default;

absl::StatusOr<std::unique_ptr<LabClient>> LabClient::Connect(const std::string& address,
                                                              Nanos timeout) {
  auto client = std::make_unique<LabClient>(address);
  RETURN_IF_ERROR(client->AwaitAnswer(timeout));
  return client;
}

absl::Status LabClient::AwaitAnswer(Nanos timeout) { return core_->AwaitAnswer(timeout); }

absl::Status LabClient::RunLab(const v1::RunLabRequest& request, Nanos suspect_after,
                               absl::FunctionRef<void(const v1::RunEvent&)> on_event) {
  return core_->RunLab(request, suspect_after, on_event);
}

void LabClient::Cancel() { core_->Cancel(); }

absl::Status LabClient::Conclude(int exit_code, const std::string& text) {
  v1::ConcludeRequest request;
  request.set_exit_code(exit_code);
  request.set_text(text);
  return core_->Call(&v1::Coordinator::Stub::Conclude, request).status();
}

absl::StatusOr<v1::InjectReply> LabClient::Inject(const v1::InjectRequest& request) {
  return core_->Call(&v1::Coordinator::Stub::Inject, request);
}

absl::StatusOr<v1::StatusReply> LabClient::Status() {
  return core_->Call(&v1::Coordinator::Stub::Status, v1::StatusRequest());
}

}  // namespace ranklab::coordinator
