#include "transport/grpc/grpc_port.h"

#include <algorithm>
#include <atomic>
#include <list>
#include <optional>
#include <utility>

#include <grpcpp/impl/service_type.h>

#include "core/check.h"
#include "core/log.h"
#include "core/status.h"
#include "transport/grpc/grpc_wire.h"
#include "transport/grpc/stream_reactor.h"

namespace ranklab::transport {
namespace {

constexpr Nanos kPatience = std::chrono::seconds(10);
// More streams than any cluster of one port has peers: somebody knocks without end.
constexpr std::size_t kVisitorsMax = 1024;

}  // namespace

// Everything but the server, which is the ServiceHost's. Shared with tasks on their way from gRPC's
// threads, which find it gone if it is.
class GrpcPort::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(EventLoop& loop, const StreamSettings& settings)
      : loop_(loop), settings_(settings), gate_(std::make_shared<LoopGate>(loop)) {}

  void MakeService() {
    service_ = MakeTensorWireService(
        gate_, [weak = weak_from_this()](std::shared_ptr<FrameStream> stream) {
          if (const std::shared_ptr<Core> core = weak.lock()) {
            core->Receive(std::move(stream));
          } else {
            stream->Close(Unavailable("this process is ending"));
          }
        });
  }

  ~Core() {
    gate_->Shut();
    visitors_.clear();
  }

  grpc::Service& service() { return *service_; }
  std::unique_ptr<Wire> Open(const WireOptions& options, DoneFn ready);
  std::int64_t refused() const { return refused_; }

  int port = 0;

 private:
  class Visitor;

  void Receive(std::shared_ptr<FrameStream> stream);
  void Welcome(Visitor& visitor);
  void Refuse(Visitor& visitor, const absl::Status& why);
  void Forget(Visitor& visitor);

  EventLoop& loop_;
  const StreamSettings settings_;
  const std::shared_ptr<LoopGate> gate_;
  std::unique_ptr<grpc::Service> service_;
  std::list<std::unique_ptr<Visitor>> visitors_;
  std::optional<std::uint32_t> opened_;   // the last generation that was
  std::weak_ptr<Rendezvous> rendezvous_;  // of that generation; gone with its wire
  std::atomic<std::int64_t> refused_ = 0;
};

// A stream that somebody opened, until its hello is read and its generation is open here.
class GrpcPort::Core::Visitor final : public StreamEvents {
 public:
  Visitor(Core& owner, std::shared_ptr<FrameStream> stream)
      : owner_(owner), stream_(std::move(stream)) {
    timer_ = owner_.loop_.RunAt(owner_.loop_.Now() + kPatience, [this] {
      owner_.Refuse(*this, hello_
                               ? DeadlineExceeded("generation %d has not opened here within 10 s",
                                                  hello_->generation)
                               : DeadlineExceeded("no hello within 10 s"));
    });
    stream_->Listen(this);
    stream_->Read();
  }
  ~Visitor() override {
    owner_.loop_.Cancel(timer_);
    if (stream_ != nullptr) {
      stream_->Listen(nullptr);
      stream_->Close(Unavailable("this process is ending"));
    }
  }

  const std::optional<Hello>& hello() const { return hello_; }
  const std::shared_ptr<FrameStream>& stream() const { return stream_; }
  std::shared_ptr<FrameStream> TakeStream() { return std::move(stream_); }

  // Each of these may destroy the visitor as its last act.
  void OnFrame(absl::StatusOr<IncomingFrame> frame) override {
    if (!frame.ok()) {
      owner_.Refuse(*this, MakeError(absl::StatusCode::kPermissionDenied, "no hello: %s",
                                     MessageOf(frame.status())));
    } else if (!frame->frame.hello.has_value()) {
      owner_.Refuse(*this, absl::PermissionDeniedError("the first frame is no hello"));
    } else {
      hello_ = frame->frame.hello;
      owner_.Welcome(*this);
    }
  }
  void OnWritten() override {}
  void OnEnded(const absl::Status& /*why*/) override { owner_.Forget(*this); }

 private:
  Core& owner_;
  std::shared_ptr<FrameStream> stream_;
  std::optional<Hello> hello_;
  TimerId timer_ = TimerId::kNone;
};

std::unique_ptr<Wire> GrpcPort::Core::Open(const WireOptions& options, DoneFn ready) {
  auto wire = std::make_unique<GrpcWire>(
      loop_, options,
      [this](const std::string& address) { return DialStream(gate_, address, settings_); },
      std::move(ready));
  opened_ = options.generation;
  rendezvous_ = wire->rendezvous();
  for (auto next = visitors_.begin(); next != visitors_.end();) {
    Visitor& visitor = **next++;  // Welcome may take it from the list
    if (visitor.hello().has_value()) {
      Welcome(visitor);
    }
  }
  return wire;
}

void GrpcPort::Core::Receive(std::shared_ptr<FrameStream> stream) {
  if (visitors_.size() >= kVisitorsMax) {
    ++refused_;
    stream->Close(ResourceExhausted("%d streams wait here already", kVisitorsMax));
    return;
  }
  visitors_.push_back(std::make_unique<Visitor>(*this, std::move(stream)));
}

void GrpcPort::Core::Welcome(Visitor& visitor) {
  const Hello& hello = *visitor.hello();
  if (hello.magic != kWireMagic) {
    Refuse(visitor, absl::PermissionDeniedError("not a ranklab tensor stream (wrong magic)"));
    return;
  }
  if (!opened_.has_value() || hello.generation > *opened_) {
    return;  // its Open is on the way here, or the timer ends it
  }
  const std::shared_ptr<Rendezvous> rendezvous = rendezvous_.lock();
  if (hello.generation < *opened_ || rendezvous == nullptr) {
    Refuse(visitor, FailedPrecondition("generation %d is over here", hello.generation));
    return;
  }
  const absl::Status admitted = rendezvous->Admit(visitor.stream(), hello);
  if (!admitted.ok()) {
    Refuse(visitor, admitted);
    return;
  }
  visitor.TakeStream();  // the rendezvous has it
  Forget(visitor);
}

void GrpcPort::Core::Refuse(Visitor& visitor, const absl::Status& why) {
  ++refused_;
  Log(LogLevel::kWarning, "refused a tensor stream from %s: %s", visitor.stream()->where(),
      MessageOf(why));
  const std::shared_ptr<FrameStream> stream = visitor.TakeStream();
  stream->Listen(nullptr);
  stream->Close(why);
  Forget(visitor);
}

void GrpcPort::Core::Forget(Visitor& visitor) {
  const auto entry = std::find_if(visitors_.begin(), visitors_.end(),
                                  [&](const auto& other) { return other.get() == &visitor; });
  RANKLAB_CHECK(entry != visitors_.end(), "a visitor leaves twice");
  visitors_.erase(entry);
}

GrpcPort::GrpcPort(EventLoop& loop, const StreamSettings& settings)
    : core_(std::make_shared<Core>(loop, settings)) {
  core_->MakeService();
}

GrpcPort::~GrpcPort() = default;

grpc::Service& GrpcPort::service() { return core_->service(); }

void GrpcPort::SetPort(int port) { core_->port = port; }

int GrpcPort::port() const { return core_->port; }

std::unique_ptr<Wire> GrpcPort::Open(const WireOptions& options, DoneFn ready) {
  return core_->Open(options, std::move(ready));
}

std::int64_t GrpcPort::refused_connections() const { return core_->refused(); }

}  // namespace ranklab::transport
