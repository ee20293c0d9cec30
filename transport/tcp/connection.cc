#include "transport/tcp/connection.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

#include "core/check.h"
#include "core/status.h"
#include "transport/tcp/sockets.h"

namespace ranklab::transport {
namespace {

constexpr std::size_t kReadAhead = 32 << 10;
// A piece is hashed, then handed to the kernel (or the other way round) while the cache holds it.
constexpr Bytes kPiece = 256 << 10;

}  // namespace

Connection::Connection(asio::io_context& io, Endpoint peer, BodyChecksums body_checksums,
                       Nanos spin)
    : io_(io),
      peer_(peer),
      body_checksums_(body_checksums),
      hash_bodies_(body_checksums != BodyChecksums::kNever),
      spin_(spin),
      buffer_(kReadAhead) {}

void Connection::Attach(tcp::socket socket, std::unique_ptr<SharedSegment> segment) {
  RANKLAB_CHECK(!socket_, "%s is connected already", NameOf(peer_));
  socket_ = std::move(socket);
  TuneSocket(*socket_);
  hash_bodies_ &= body_checksums_ == BodyChecksums::kAlways || !IsWithinHost(*socket_);
  if (segment != nullptr && ended_.ok()) {
    counters_.shared_memory = true;
    ring_.emplace(io_, *socket_, std::move(segment), spin_);
    const auto hear = [self = shared_from_this()] { return self->ring_->HearWakeUps(); };
    asio::co_spawn(io_, hear, asio::detached);
  }
  StartIfReady();
}

void Connection::Deliver(WireSink& sink) {
  sink_ = &sink;
  StartIfReady();
}

void Connection::StartIfReady() {
  if (!socket_ || !ended_.ok()) {
    return;
  }
  StartWriting();
  if (sink_ != nullptr && !reading_) {
    reading_ = true;
    asio::co_spawn(io_, ReadLoop(shared_from_this()), asio::detached);
  }
}

void Connection::Send(const MessageHeader& header, Payload body, DoneFn sent) {
  RANKLAB_CHECK(header.size == body.size, "header %d, body %d", header.size, body.size);
  RANKLAB_CHECK(body.data != nullptr || body.size == 0, "sizes without bytes do not travel by TCP");
  const bool has_trailer = hash_bodies_ && (body.size > 0 || !header.error.empty());
  queue_.push_back(
      {EncodeHeader(header, has_trailer), header.error, body, std::move(sent), has_trailer, {}});
  if (socket_ || !ended_.ok()) {
    StartWriting();
  }
}

void Connection::Abort(const absl::Status& reason) {
  sink_ = nullptr;
  End(reason, reason);
}

// The only place where a connection ends; calls out last.
void Connection::End(const absl::Status& why, const absl::Status& sends_end_with) {
  if (!ended_.ok()) {
    return;
  }
  ended_ = why;
  send_error_ = sends_end_with;
  if (socket_) {
    error_code ignored;
    socket_->close(ignored);
  }
  if (ring_) {
    ring_->Close();
  }
  StartWriting();  // which fails what is queued
  if (WireSink* sink = std::exchange(sink_, nullptr)) {
    sink->Lost(peer_, why);
  }
}

void Connection::StartWriting() {
  if (!writing_ && !queue_.empty()) {
    writing_ = true;
    asio::co_spawn(io_, WriteLoop(shared_from_this()), asio::detached);
  }
}

// Ends when there is nothing to write; Send starts it again.
asio::awaitable<void> Connection::WriteLoop(std::shared_ptr<Connection> self) {
  co_await asio::post(self->io_, asio::use_awaitable);  // out of the call that started it
  while (!self->queue_.empty()) {
    if (!self->send_error_.ok()) {
      self->FailQueue();
      continue;
    }
    const bool large = self->queue_.front().body.size > kPiece;
    const error_code error = large ? co_await self->WriteLarge() : co_await self->WriteSmall();
    if (error && self->ended_.ok()) {
      self->send_error_ =
          Unavailable("%s: sending failed: %s", NameOf(self->peer_), error.message());
    }
  }
  self->writing_ = false;
}

// As many small messages as stand at the front of the queue, up to a batch, in one call.
asio::awaitable<error_code> Connection::WriteSmall() {
  Pieces pieces;
  pieces.reserve(kBatch * kPiecesOfMessage);
  std::size_t count = 0;
  Bytes bytes = 0;
  for (Outgoing& message : queue_) {
    bytes += message.body.size;
    if (count == kBatch || (count > 0 && bytes > kPiece)) {
      break;
    }
    AddFront(message, pieces);
    if (message.body.size > 0) {
      pieces.emplace_back(message.body.data, static_cast<std::size_t>(message.body.size));
    }
    if (message.has_trailer) {
      write_checksum_.Reset();
      write_checksum_.Add(reinterpret_cast<const std::byte*>(message.error.data()),
                          static_cast<Bytes>(message.error.size()));
      write_checksum_.Add(message.body.data, message.body.size);
      message.trailer = write_checksum_.Digest();
      pieces.emplace_back(message.trailer.data(), kTrailerBytes);
    }
    ++count;
  }
  const error_code error = co_await Write(pieces);
  if (!error) {
    for (; count > 0; --count) {
      FinishFront();
    }
  }
  co_return error;
}

asio::awaitable<error_code> Connection::WriteLarge() {
  Outgoing& message = queue_.front();  // stays where it is while others are appended
  Pieces pieces;
  AddFront(message, pieces);
  write_checksum_.Reset();
  write_checksum_.Add(reinterpret_cast<const std::byte*>(message.error.data()),
                      static_cast<Bytes>(message.error.size()));
  for (Bytes at = 0; at < message.body.size; at += kPiece) {
    const std::byte* piece = message.body.data + at;
    const Bytes size = std::min(kPiece, message.body.size - at);
    pieces.emplace_back(piece, static_cast<std::size_t>(size));
    if (message.has_trailer) {
      write_checksum_.Add(piece, size);
      if (at + size == message.body.size) {
        message.trailer = write_checksum_.Digest();
        pieces.emplace_back(message.trailer.data(), kTrailerBytes);
      }
    }
    if (const error_code error = co_await Write(pieces)) {
      co_return error;
    }
    pieces.clear();
  }
  FinishFront();
  co_return error_code();
}

void Connection::AddFront(const Outgoing& message, Pieces& pieces) const {
  pieces.emplace_back(message.header.data(), message.header.size());
  if (!message.error.empty()) {
    pieces.emplace_back(message.error.data(), message.error.size());
  }
}

asio::awaitable<error_code> Connection::Write(const Pieces& pieces) {
  const auto [error, count] =
      ring_ ? co_await ring_->Write(pieces) : co_await asio::async_write(*socket_, pieces, kAwait);
  counters_.wire_sent += static_cast<Bytes>(count);
  co_return ended_.ok() ? error : asio::error::make_error_code(asio::error::operation_aborted);
}

void Connection::FinishFront() {
  ++counters_.messages_sent;
  counters_.body_sent += queue_.front().body.size;
  DoneFn sent = std::move(queue_.front().sent);
  queue_.pop_front();
  sent(absl::OkStatus());
}

void Connection::FailQueue() {
  std::deque<Outgoing> failed = std::exchange(queue_, {});
  for (Outgoing& message : failed) {
    message.sent(send_error_);
  }
}

asio::awaitable<void> Connection::ReadLoop(std::shared_ptr<Connection> self) {
  absl::Status status;
  while (status.ok() && self->ended_.ok()) {
    status = co_await self->ReadMessage();
  }
  // A peer that broke the rules is, for what was to be sent to it, a peer that is gone.
  self->End(status, Unavailable("%s", MessageOf(status)));
}

asio::awaitable<absl::Status> Connection::ReadMessage() {
  inside_message_ = false;
  HeaderBytes bytes;
  if (absl::Status status = co_await Receive(bytes.data(), bytes.size()); !status.ok()) {
    co_return status;
  }
  absl::StatusOr<FrameHeader> frame = DecodeHeader(bytes);
  if (!frame.ok()) {
    co_return Annotate(frame.status(), NameOf(peer_) + " sent");
  }
  MessageHeader& header = frame->message;
  header.error.resize(frame->error_bytes);
  auto* const error_text = reinterpret_cast<std::byte*>(header.error.data());
  if (absl::Status status = co_await Receive(error_text, header.error.size()); !status.ok()) {
    co_return status;
  }
  const absl::StatusOr<WireSink::Acceptance> accepted = sink_->Accept(peer_, header);
  if (!accepted.ok()) {
    co_return Annotate(accepted.status(), NameOf(peer_));
  }
  if (!ended_.ok()) {  // Accept may do anything
    co_return ended_;
  }
  RANKLAB_CHECK(accepted->landing.size == header.size, "landing %d, message %d",
                accepted->landing.size, header.size);
  read_checksum_.Reset();
  read_checksum_.Add(error_text, static_cast<Bytes>(header.error.size()));
  absl::Status status = co_await ReadBody(accepted->landing, frame->has_trailer);
  if (status.ok() && frame->has_trailer) {
    status = co_await ReadTrailer();
  }
  if (status.ok()) {
    ++counters_.messages_received;
    counters_.body_received += header.size;
    sink_->Arrived(peer_, header, accepted->token);
  }
  co_return status;
}

// Straight into the landing, but for what was read ahead; a body that nobody wants is read away.
asio::awaitable<absl::Status> Connection::ReadBody(Landing landing, bool hashed) {
  std::vector<std::byte> unwanted;
  if (landing.data == nullptr && landing.size > 0) {
    unwanted.resize(static_cast<std::size_t>(std::min(kPiece, landing.size)));
  }
  for (Bytes at = 0; at < landing.size;) {
    const Bytes size = std::min(kPiece, landing.size - at);
    std::byte* to = landing.data == nullptr ? unwanted.data() : landing.data + at;
    if (absl::Status status = co_await Receive(to, static_cast<std::size_t>(size)); !status.ok()) {
      co_return status;
    }
    if (hashed) {
      read_checksum_.Add(to, size);
    }
    at += size;
  }
  co_return absl::OkStatus();
}

asio::awaitable<absl::Status> Connection::ReadTrailer() {
  TrailerBytes trailer;
  absl::Status status = co_await Receive(trailer.data(), trailer.size());
  if (status.ok() && trailer != read_checksum_.Digest()) {
    status = MakeError(absl::StatusCode::kDataLoss, "%s sent a body with a wrong checksum",
                       NameOf(peer_));
  }
  co_return status;
}

// Exactly `size` bytes. Ok also says that the connection still stands.
asio::awaitable<absl::Status> Connection::Receive(std::byte* to, std::size_t size) {
  while (size > 0) {
    const std::size_t taken = TakeBuffered(to, size);
    to += taken;
    size -= taken;
    if (size == 0) {
      break;
    }
    const bool ahead = !ring_ && size < kReadAhead;
    const asio::mutable_buffer into = ahead ? asio::buffer(buffer_) : asio::buffer(to, size);
    const auto [error, count] =
        ring_ ? co_await ring_->ReadSome(into) : co_await socket_->async_read_some(into, kAwait);
    if (!ended_.ok()) {
      co_return ended_;
    }
    if (error) {
      co_return ReadError(error);
    }
    inside_message_ = true;
    counters_.wire_received += static_cast<Bytes>(count);
    if (ahead) {
      buffered_begin_ = 0;
      buffered_end_ = count;
    } else {
      to += count;
      size -= count;
    }
  }
  co_return absl::OkStatus();
}

std::size_t Connection::TakeBuffered(std::byte* to, std::size_t size) {
  const std::size_t taken = std::min(size, buffered_end_ - buffered_begin_);
  if (taken > 0) {
    inside_message_ = true;
    std::memcpy(to, buffer_.data() + buffered_begin_, taken);
    buffered_begin_ += taken;
  }
  return taken;
}

absl::Status Connection::ReadError(const error_code& error) const {
  if (!send_error_.ok()) {
    return send_error_;  // which knows better: the kernel tells an error once
  }
  if (error == asio::error::eof) {
    return Unavailable("%s closed the connection%s", NameOf(peer_),
                       inside_message_ ? " in the middle of a message" : "");
  }
  if (error == asio::error::connection_reset) {
    return Unavailable("%s: connection reset", NameOf(peer_));
  }
  return Unavailable("%s: %s", NameOf(peer_), error.message());
}

}  // namespace ranklab::transport
