#include "transport/grpc/peer_link.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/status.h"

namespace ranklab::transport {
namespace {

constexpr Bytes kGrpcPrefix = 5;  // compressed flag and length, in front of each gRPC message

}  // namespace

PeerLink::PeerLink(EventLoop& loop, const WirePeer& peer, LostFn lost)
    : loop_(loop), peer_(peer), lost_(std::move(lost)) {}

PeerLink::~PeerLink() { Stop(Aborted("the wire is gone")); }

void PeerLink::Deliver(WireSink& sink) {
  sink_ = &sink;
  BeginReading();
}

void PeerLink::Join(std::shared_ptr<FrameStream> stream) {
  RANKLAB_CHECK(stream_ == nullptr, "%s joined twice", NameOf(peer_.endpoint));
  if (!ended_.ok()) {
    stream->Close(ended_);
    return;
  }
  stream_ = std::move(stream);
  stream_->Listen(this);
  BeginReading();
  WriteNext();
}

void PeerLink::Send(const MessageHeader& header, Payload body, DoneFn sent) {
  RANKLAB_CHECK(header.size == body.size, "a header of %d bytes on a body of %d", header.size,
                body.size);
  if (!ended_.ok()) {
    loop_.Post([sent = std::move(sent), status = ended_]() mutable { sent(status); });
    return;
  }
  auto message = std::make_shared<Outgoing>();
  message->header = header;
  message->body = body;
  message->sent = std::move(sent);
  outbox_.push_back(std::move(message));
  // gRPC may serialize, and call the kernel, within the call that begins a write: not before the
  // loop has delivered what else is due now.
  if (!write_posted_ && writing_ == nullptr && stream_ != nullptr) {
    write_posted_ = true;
    loop_.Post([weak = weak_from_this()] {
      if (const std::shared_ptr<PeerLink> self = weak.lock()) {
        self->write_posted_ = false;
        self->WriteNext();
      }
    });
  }
}

void PeerLink::End(const absl::Status& reason) {
  lost_ = nullptr;
  Stop(reason);
}

void PeerLink::OnWritten() {
  const std::shared_ptr<PeerLink> self = shared_from_this();  // `sent` may drop the owner
  const std::shared_ptr<Outgoing> message = std::exchange(writing_, nullptr);
  if (message->framed == message->body.size) {
    message->finished = true;
    ++counters_.messages_sent;
  }
  WriteNext();
  SettleIfDone(*message);
}

void PeerLink::OnFrame(absl::StatusOr<IncomingFrame> frame) {
  const std::shared_ptr<PeerLink> self = shared_from_this();  // the sink may drop the owner
  absl::Status status = frame.status();
  if (status.ok()) {
    stream_->Read();  // the next frame comes in while this one is copied
    status = Take(frame->frame);
  }
  if (!status.ok()) {
    Lose(status);
  }
}

void PeerLink::OnEnded(const absl::Status& why) {
  const std::shared_ptr<PeerLink> self = shared_from_this();
  Lose(Unavailable("%s", MessageOf(why)));
}

void PeerLink::BeginReading() {
  if (sink_ != nullptr && stream_ != nullptr) {
    stream_->Read();
  }
}

void PeerLink::WriteNext() {
  if (stream_ == nullptr || writing_ != nullptr || outbox_.empty()) {
    return;
  }
  const std::shared_ptr<Outgoing> message = outbox_.front();
  const Payload piece = {.data = message->body.data + message->framed,
                         .size = std::min(kFramePayload, message->body.size - message->framed)};
  OutgoingFrame frame;
  frame.prefix = EncodeFrame(message->begun ? nullptr : &message->header, piece);
  frame.payload = piece;
  if (piece.size > 0) {
    ++message->borrowed;
    frame.released = [message] {
      --message->borrowed;
      SettleIfDone(*message);
    };
  }
  message->begun = true;
  message->framed += piece.size;
  if (message->framed == message->body.size) {
    outbox_.pop_front();
  }
  writing_ = message;
  counters_.body_sent += piece.size;
  counters_.wire_sent += kGrpcPrefix + static_cast<Bytes>(frame.prefix.size()) + piece.size;
  stream_->Write(std::move(frame));
}

void PeerLink::SettleIfDone(Outgoing& message) {
  if (message.finished && message.borrowed == 0 && message.sent != nullptr) {
    std::exchange(message.sent, nullptr)(message.status);
  }
}

absl::Status PeerLink::Take(const Frame& frame) {
  counters_.body_received += frame.payload_size;
  counters_.wire_received += frame.encoded_size + kGrpcPrefix;
  if (frame.hello.has_value()) {
    return InvalidArgument("a second hello");
  }
  if (frame.header.has_value()) {
    RETURN_IF_ERROR(BeginMessage(*frame.header));
    if (sink_ == nullptr) {
      return absl::OkStatus();  // aborted within Accept
    }
  } else if (!incoming_.has_value() || frame.payload_size == 0) {
    return InvalidArgument("a frame that belongs to no message");
  }
  const Bytes missing = incoming_->header.size - incoming_->received;
  if (frame.payload_size > missing) {
    return InvalidArgument("a frame of %d bytes where %d are missing", frame.payload_size, missing);
  }
  Land(frame);
  return absl::OkStatus();
}

absl::Status PeerLink::BeginMessage(const MessageHeader& header) {
  if (incoming_.has_value()) {
    return InvalidArgument("a new message after %d of %d bytes", incoming_->received,
                           incoming_->header.size);
  }
  ASSIGN_OR_RETURN(const WireSink::Acceptance acceptance, sink_->Accept(peer_.endpoint, header));
  RANKLAB_CHECK(acceptance.landing.data == nullptr || acceptance.landing.size == header.size,
                "a landing of %d bytes for %d", acceptance.landing.size, header.size);
  incoming_ = Incoming{.header = header, .acceptance = acceptance};
  return absl::OkStatus();
}

void PeerLink::Land(const Frame& frame) {
  std::byte* landing = incoming_->acceptance.landing.data;
  for (const ByteSpan piece : frame.payload) {
    if (landing != nullptr) {
      std::memcpy(landing + incoming_->received, piece.data(), piece.size());
    }
    incoming_->received += static_cast<Bytes>(piece.size());
  }
  if (incoming_->received == incoming_->header.size) {
    ++counters_.messages_received;
    const Incoming message = *std::exchange(incoming_, std::nullopt);
    sink_->Arrived(peer_.endpoint, message.header, message.acceptance.token);
  }
}

void PeerLink::Lose(const absl::Status& why) {
  if (!ended_.ok()) {
    return;
  }
  const absl::Status named =
      Annotate(why, absl::StrFormat("%s at %s", NameOf(peer_.endpoint), peer_.address));
  Stop(Unavailable("%s", MessageOf(named)));
  if (LostFn lost = std::exchange(lost_, nullptr)) {
    lost(named);
  }
}

void PeerLink::Stop(const absl::Status& reason) {
  if (!ended_.ok()) {
    return;
  }
  ended_ = reason;
  sink_ = nullptr;
  incoming_.reset();
  if (stream_ != nullptr) {
    stream_->Listen(nullptr);
    stream_->Close(reason);
    stream_ = nullptr;  // gRPC keeps unsent payloads as long as anybody keeps the stream
  }
  if (writing_ != nullptr && (outbox_.empty() || outbox_.front() != writing_)) {
    outbox_.push_front(writing_);
  }
  writing_ = nullptr;
  for (const std::shared_ptr<Outgoing>& message : std::exchange(outbox_, {})) {
    message->finished = true;
    message->status = reason;
    loop_.Post([message] { SettleIfDone(*message); });
  }
}

}  // namespace ranklab::transport
