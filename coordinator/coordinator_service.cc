#include "coordinator/coordinator_service.h"

#include <utility>

#include <grpcpp/grpcpp.h>

#include "coordinator/grpc_status.h"
#include "coordinator/write_queue.h"
#include "core/status.h"
#include "protos/coordinator.grpc.pb.h"

namespace ranklab::coordinator {

class CoordinatorService::Core final : public v1::Coordinator::CallbackService,
                                       public std::enable_shared_from_this<Core> {
 public:
  Core(EventLoop& loop, CoordinatorOptions options)
      : loop_(loop), clock_(options.clock), plane_(loop, std::move(options)) {}

  grpc::ServerBidiReactor<v1::MemberMessage, v1::CoordinatorMessage>* Session(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* ReadClock(grpc::CallbackServerContext* context,
                                      const v1::ReadClockRequest* request,
                                      v1::ReadClockReply* reply) override;
  grpc::ServerWriteReactor<v1::RunEvent>* RunLab(grpc::CallbackServerContext* context,
                                                 const v1::RunLabRequest* request) override;
  grpc::ServerUnaryReactor* Conclude(grpc::CallbackServerContext* context,
                                     const v1::ConcludeRequest* request,
                                     v1::ConcludeReply* reply) override;
  grpc::ServerUnaryReactor* Inject(grpc::CallbackServerContext* context,
                                   const v1::InjectRequest* request,
                                   v1::InjectReply* reply) override;
  grpc::ServerUnaryReactor* Status(grpc::CallbackServerContext* context,
                                   const v1::StatusRequest* request,
                                   v1::StatusReply* reply) override;

  EventLoop& loop() { return loop_; }
  ControlPlane& plane() { return plane_; }  // on the loop only

 private:
  EventLoop& loop_;
  const std::string clock_;
  ControlPlane plane_;
};

namespace {

// The writing half of a call, and its life: one write in flight, Close after what was sent, the
// plane's Ended once. gRPC's reactions only post; everything else happens on the loop.
template <typename Core, typename Reactor, typename Stream, typename Message>
class Call : public Reactor,
             public Stream,
             public std::enable_shared_from_this<Call<Core, Reactor, Stream, Message>> {
 public:
  explicit Call(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  void Send(Message message) final {
    if (!closing_) {
      queue_.Push(std::move(message));
      Pump();
    }
  }

  void Close(absl::Status status) final {
    if (!closing_) {
      closing_ = true;
      status_ = std::move(status);
      Pump();
    }
  }

  void OnWriteDone(bool ok) final {
    Post([this, ok] {
      queue_.Written();
      if (!ok) {
        queue_.Clear();
      }
      Pump();
    });
  }

  void OnCancel() final {
    Post([this] { Over(); });
  }

  void OnDone() final {
    Post([this] { Over(); });
    self_.reset();  // the post keeps it until it has run, or was dropped with the loop
  }

 protected:
  // Before gRPC knows of the call.
  void KeepUntilDone() { self_ = this->shared_from_this(); }

  void Post(Task task) {
    core_->loop().Post(
        [self = this->shared_from_this(), task = std::move(task)]() mutable { task(); });
  }

  // The other side is gone, or the call is done.
  void Over() {
    if (!over_) {
      over_ = true;
      core_->plane().Ended(static_cast<Stream&>(*this));
    }
    queue_.Clear();
    Close(absl::CancelledError("the call is over"));
  }

  void Forget() { queue_.Clear(); }

  Core& core() { return *core_; }
  Bytes queued() const { return queue_.bytes(); }
  bool closing() const { return closing_; }
  bool finished() const { return finished_; }

 private:
  void Pump() {
    if (finished_) {
      return;
    }
    if (const Message* next = queue_.Next()) {
      this->StartWrite(next);
    } else if (closing_ && queue_.empty()) {
      finished_ = true;
      this->Finish(ToGrpc(status_));
    }
  }

  std::shared_ptr<Core> core_;
  std::shared_ptr<Call> self_;
  WriteQueue<Message> queue_;
  absl::Status status_;
  bool closing_ = false;   // no more messages
  bool finished_ = false;  // Finish was called
  bool over_ = false;      // the plane knows
};

template <typename Core>
class SessionCall final
    : public Call<Core, grpc::ServerBidiReactor<v1::MemberMessage, v1::CoordinatorMessage>,
                  MemberStream, v1::CoordinatorMessage> {
 public:
  using SessionCall::Call::Call;

  void Begin() {
    this->KeepUntilDone();
    this->Post([this] {
      this->core().plane().Opened(*this);
      Read();
    });
  }

  void OnReadDone(bool ok) override {
    this->Post([this, ok] {
      if (!ok) {
        this->Over();
        return;
      }
      this->core().plane().Received(*this, std::move(incoming_));
      Read();
    });
  }

 private:
  // One message at a time, the next once the loop has dealt with it: a flood waits in its socket.
  void Read() {
    if (!this->finished()) {
      this->StartRead(&incoming_);
    }
  }

  v1::MemberMessage incoming_;
};

template <typename Core>
class RunCall final
    : public Call<Core, grpc::ServerWriteReactor<v1::RunEvent>, ClientStream, v1::RunEvent> {
 public:
  RunCall(std::shared_ptr<Core> core, std::string peer)
      : RunCall::Call(std::move(core)), peer_(std::move(peer)) {}

  void Begin(const v1::RunLabRequest& request) {
    this->KeepUntilDone();
    this->Post([this, request] { this->core().plane().RunLab(request, *this); });
  }

  void Drop(absl::Status status) override {
    this->Forget();
    this->Close(std::move(status));
  }
  Bytes waiting() const override { return this->queued(); }
  std::string peer() const override { return peer_; }

 private:
  const std::string peer_;
};

}  // namespace

grpc::ServerBidiReactor<v1::MemberMessage, v1::CoordinatorMessage>*
CoordinatorService::Core::Session(grpc::CallbackServerContext*) {
  const auto call = std::make_shared<SessionCall<Core>>(shared_from_this());
  call->Begin();
  return call.get();
}

grpc::ServerWriteReactor<v1::RunEvent>* CoordinatorService::Core::RunLab(
    grpc::CallbackServerContext* context, const v1::RunLabRequest* request) {
  const auto call = std::make_shared<RunCall<Core>>(shared_from_this(), context->peer());
  call->Begin(*request);
  return call.get();
}

// Answered here and not on the loop: time in its queue would look like distance.
grpc::ServerUnaryReactor* CoordinatorService::Core::ReadClock(grpc::CallbackServerContext* context,
                                                              const v1::ReadClockRequest*,
                                                              v1::ReadClockReply* reply) {
  reply->set_now_ns(loop_.Now().count());
  reply->set_clock(clock_);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* CoordinatorService::Core::Conclude(grpc::CallbackServerContext* context,
                                                             const v1::ConcludeRequest* request,
                                                             v1::ConcludeReply*) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  // The request lives until Finish.
  loop_.Post([self = shared_from_this(), request, reactor] {
    reactor->Finish(ToGrpc(self->plane_.Conclude(*request)));
  });
  return reactor;
}

grpc::ServerUnaryReactor* CoordinatorService::Core::Inject(grpc::CallbackServerContext* context,
                                                           const v1::InjectRequest* request,
                                                           v1::InjectReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  // Request and reply live until Finish.
  loop_.Post([self = shared_from_this(), request, reply, reactor] {
    absl::StatusOr<v1::InjectReply> applied = self->plane_.Inject(*request);
    if (applied.ok()) {
      *reply = *std::move(applied);
    }
    reactor->Finish(ToGrpc(applied.status()));
  });
  return reactor;
}

grpc::ServerUnaryReactor* CoordinatorService::Core::Status(grpc::CallbackServerContext* context,
                                                           const v1::StatusRequest*,
                                                           v1::StatusReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  loop_.Post([self = shared_from_this(), reply, reactor] {
    *reply = self->plane_.Status();
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

CoordinatorService::CoordinatorService(EventLoop& loop, CoordinatorOptions options)
    : core_(std::make_shared<Core>(loop, std::move(options))) {}

CoordinatorService::~CoordinatorService() = default;

grpc::Service& CoordinatorService::service() { return *core_; }

void CoordinatorService::Shutdown(int exit_code, const std::string& reason) {
  core_->plane().Shutdown(exit_code, reason);
}

}  // namespace ranklab::coordinator
