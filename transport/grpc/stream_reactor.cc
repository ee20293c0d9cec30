#include "transport/grpc/stream_reactor.h"

#include <chrono>
#include <utility>
#include <vector>

#include <absl/synchronization/mutex.h>
#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include "core/status.h"
#include "protos/wire.grpc.pb.h"

namespace ranklab::transport {
namespace {

using grpc::ByteBuffer;

constexpr char kStreamMethod[] = "/ranklab.v1.TensorWire/Stream";

// Every call has a deadline. A tensor stream lives as long as its generation, whose end (or whose
// loss of a peer) closes it; this is only the bound for one that everybody has forgotten.
constexpr auto kStreamDeadline = std::chrono::hours(24);

// A payload while gRPC may read it.
struct Borrow {
  std::shared_ptr<LoopGate> gate;
  Task released;
};

// gRPC's last reference is gone; on whatever thread, possibly inside one of our own calls.
void Release(void* data) {
  const std::unique_ptr<Borrow> borrow(static_cast<Borrow*>(data));
  borrow->gate->Post(std::move(borrow->released));
}

// The frame as slices: the prefix copied, the payload borrowed.
ByteBuffer BufferOf(OutgoingFrame frame, const std::shared_ptr<LoopGate>& gate) {
  const grpc::Slice prefix(frame.prefix);
  if (frame.payload.size == 0) {
    return ByteBuffer(&prefix, 1);
  }
  // gRPC's slices are of mutable bytes, but those of a message to send are only read.
  auto* bytes = const_cast<std::byte*>(frame.payload.data);  // NOLINT
  auto borrow = std::make_unique<Borrow>(Borrow{gate, std::move(frame.released)});
  const grpc::Slice slices[] = {
      prefix,
      grpc::Slice(bytes, static_cast<std::size_t>(frame.payload.size), &Release, borrow.release())};
  return ByteBuffer(slices, 2);
}

absl::StatusOr<IncomingFrame> FrameOf(const ByteBuffer& buffer) {
  auto slices = std::make_shared<std::vector<grpc::Slice>>();
  if (const grpc::Status status = buffer.Dump(slices.get()); !status.ok()) {
    return InvalidArgument("a message that cannot be read: %s", status.error_message());
  }
  std::vector<ByteSpan> spans;
  spans.reserve(slices->size());
  for (const grpc::Slice& slice : *slices) {
    spans.emplace_back(reinterpret_cast<const std::byte*>(slice.begin()), slice.size());
  }
  ASSIGN_OR_RETURN(Frame frame, DecodeFrame(spans));
  return IncomingFrame{.frame = std::move(frame), .bytes = std::move(slices)};
}

grpc::Status GrpcStatusOf(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), MessageOf(status));
}

// What both ends of a stream share. gRPC keeps the object alive through `self_` until OnDone, its
// last call; the loop through whoever holds the stream.
template <typename Reactor>
class ReactorStream : public FrameStream, public Reactor {
 public:
  ReactorStream(std::shared_ptr<LoopGate> gate, std::string where)
      : gate_(std::move(gate)), where_(std::move(where)) {}

  void Listen(StreamEvents* events) override { events_ = events; }

  void Read() override {
    absl::MutexLock lock(&mutex_);
    if (!ending_) {
      this->StartRead(&read_buffer_);
    }
  }

  void Write(OutgoingFrame frame) override {
    absl::MutexLock lock(&mutex_);
    if (!ending_) {
      write_buffer_ = BufferOf(std::move(frame), gate_);
      writing_ = true;
      this->StartWrite(&write_buffer_);
    } else if (frame.released != nullptr) {
      gate_->Post(std::move(frame.released));
    }
  }

  std::string where() const override { return where_; }

  void OnReadDone(bool ok) override {
    if (!ok) {
      End(Unavailable("the other side has ended the stream"));
      return;
    }
    absl::StatusOr<IncomingFrame> frame = FrameOf(read_buffer_);
    read_buffer_.Clear();
    Tell([frame = std::move(frame)](StreamEvents& events) mutable {
      events.OnFrame(std::move(frame));
    });
  }

  void OnWriteDone(bool ok) override {
    write_buffer_.Clear();  // gRPC has its own references to the slices while it needs them
    {
      absl::MutexLock lock(&mutex_);
      writing_ = false;
    }
    if (!ok) {
      End(Unavailable("the other side has ended the stream"));
      return;
    }
    Tell([](StreamEvents& events) { events.OnWritten(); });
  }

 protected:
  // Lets the call end, once: starts nothing more, whatever the loop still asks for. The loop may be
  // busy or gone, so this does not wait for it.
  virtual void End(const absl::Status& why) = 0;

  bool BeginEnding() {
    absl::MutexLock lock(&mutex_);
    return !std::exchange(ending_, true);
  }

  bool writing() {
    absl::MutexLock lock(&mutex_);
    return writing_;
  }

  void KeepUntilDone(std::shared_ptr<ReactorStream> self) { self_ = std::move(self); }

  // From OnDone: the object may be gone when this returns.
  void Ended(absl::Status why) {
    const std::shared_ptr<ReactorStream> self = std::move(self_);
    const std::shared_ptr<LoopGate> gate = gate_;
    gate->Post([self, why = std::move(why)] {
      if (StreamEvents* events = std::exchange(self->events_, nullptr)) {
        events->OnEnded(why);
      }
    });
  }

 private:
  template <typename Event>
  void Tell(Event event) {
    gate_->Post([self = self_, event = std::move(event)]() mutable {
      if (self->events_ != nullptr) {
        event(*self->events_);
      }
    });
  }

  const std::shared_ptr<LoopGate> gate_;
  const std::string where_;
  StreamEvents* events_ = nullptr;       // on the loop
  std::shared_ptr<ReactorStream> self_;  // until OnDone
  ByteBuffer read_buffer_;               // gRPC's from StartRead to OnReadDone
  ByteBuffer write_buffer_;              // likewise for writes

  // The only lock: gRPC forbids to start a read or write on a call that has ended, and a call may
  // end on gRPC's threads while the loop is about to start one.
  absl::Mutex mutex_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
};

class DialedStream final : public ReactorStream<grpc::ClientBidiReactor<ByteBuffer, ByteBuffer>> {
 public:
  DialedStream(std::shared_ptr<LoopGate> gate, const std::string& address,
               const StreamSettings& settings)
      : ReactorStream(std::move(gate), address), channel_(MakeChannel(address, settings)) {
    context_.set_deadline(std::chrono::system_clock::now() + kStreamDeadline);
    context_.set_wait_for_ready(true);
  }

  void Start(std::shared_ptr<DialedStream> self) {
    grpc::GenericStub(channel_).PrepareBidiStreamingCall(&context_, kStreamMethod, {}, this);
    KeepUntilDone(std::move(self));
    AddHold();  // reads and writes are started from the loop
    StartCall();
  }

  void Close(const absl::Status& why) override {
    context_.TryCancel();
    End(why);
  }

  void OnDone(const grpc::Status& status) override {
    const std::string reason = status.error_message();
    Ended(absl::Status(status.ok() ? absl::StatusCode::kUnavailable
                                   : static_cast<absl::StatusCode>(status.error_code()),
                       reason.empty() ? "the other side has ended the stream" : reason));
  }

 private:
  // The status is the other side's to give; it comes with OnDone.
  void End(const absl::Status& /*why*/) override {
    if (BeginEnding()) {
      RemoveHold();
    }
  }

  const std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
};

class ServedStream final : public ReactorStream<grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>> {
 public:
  ServedStream(std::shared_ptr<LoopGate> gate, grpc::CallbackServerContext& context)
      : ReactorStream(std::move(gate), context.peer()), context_(context) {}

  void Start(std::shared_ptr<ServedStream> self) { KeepUntilDone(std::move(self)); }

  void Close(const absl::Status& why) override { End(why); }

  void OnCancel() override { End(Unavailable("the connection is gone")); }

  void OnDone() override { Ended(Unavailable("the connection is gone")); }

 private:
  void End(const absl::Status& why) override {
    if (BeginEnding()) {
      if (writing()) {
        // A status waits behind what is being written, for a peer that may never read it.
        context_.TryCancel();
      }
      Finish(GrpcStatusOf(why));
    }
  }

  grpc::CallbackServerContext& context_;  // gRPC's, until OnDone
};

// Raw, so that messages stay slices; registered by name, so that reflection lists it.
class TensorWireService final
    : public v1::TensorWire::WithRawCallbackMethod_Stream<v1::TensorWire::Service> {
 public:
  TensorWireService(std::shared_ptr<LoopGate> gate, StreamAccepted accepted)
      : gate_(std::move(gate)), accepted_(std::move(accepted)) {}

  grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* Stream(
      grpc::CallbackServerContext* context) override {
    auto stream = std::make_shared<ServedStream>(gate_, *context);
    stream->Start(stream);
    if (!gate_->Post([accepted = accepted_, stream] { accepted(stream); })) {
      stream->Close(Unavailable("this process is ending"));
    }
    return stream.get();
  }

 private:
  const std::shared_ptr<LoopGate> gate_;
  const StreamAccepted accepted_;
};

}  // namespace

std::shared_ptr<FrameStream> DialStream(std::shared_ptr<LoopGate> gate, const std::string& address,
                                        const StreamSettings& settings) {
  auto stream = std::make_shared<DialedStream>(std::move(gate), address, settings);
  stream->Start(stream);
  return stream;
}

std::unique_ptr<grpc::Service> MakeTensorWireService(std::shared_ptr<LoopGate> gate,
                                                     StreamAccepted accepted) {
  return std::make_unique<TensorWireService>(std::move(gate), std::move(accepted));
}

}  // namespace ranklab::transport
