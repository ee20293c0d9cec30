// One established connection of a TcpWire: its queue of messages to send, and two coroutines, one
// that writes and one that reads. On the loop.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "core/endpoint.h"
#include "core/event_loop.h"
#include "transport/tcp/asio.h"
#include "transport/tcp/body_checksums.h"
#include "transport/tcp/frame.h"
#include "transport/tcp/ring_stream.h"
#include "transport/wire.h"

namespace ranklab::transport {

// Lives until its coroutines have ended, which Abort makes them do; so a landing or a body is never
// touched by a coroutine whose connection has ended: each checks after every wait.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // `spin`: RingStream's.
  Connection(asio::io_context& io, Endpoint peer, BodyChecksums body_checksums, Nanos spin);

  // Until then messages to send wait. Bytes go through `segment`, if there is one.
  void Attach(tcp::socket socket, std::unique_ptr<SharedSegment> segment);
  // Until then nothing is read.
  void Deliver(WireSink& sink);
  bool attached() const { return socket_.has_value(); }

  // As Wire::Send: `sent` never runs inside the call.
  void Send(const MessageHeader& header, Payload body, DoneFn sent);

  // As Wire::Abort, of this connection. The sink is forgotten.
  void Abort(const absl::Status& reason);

  const WireCounters& counters() const { return counters_; }

 private:
  struct Outgoing {
    HeaderBytes header;
    std::string error;
    Payload body;
    DoneFn sent;
    bool has_trailer = false;
    TrailerBytes trailer{};
  };
  // No more than fits one call of the kernel.
  static constexpr std::size_t kBatch = 8;
  static constexpr std::size_t kPiecesOfMessage = 4;
  using Pieces = std::vector<asio::const_buffer>;

  void StartIfReady();
  void StartWriting();

  static asio::awaitable<void> WriteLoop(std::shared_ptr<Connection> self);
  asio::awaitable<error_code> WriteSmall();
  asio::awaitable<error_code> WriteLarge();
  asio::awaitable<error_code> Write(const Pieces& pieces);
  void AddFront(const Outgoing& message, Pieces& pieces) const;
  void FinishFront();
  void FailQueue();

  static asio::awaitable<void> ReadLoop(std::shared_ptr<Connection> self);
  asio::awaitable<absl::Status> ReadMessage();
  asio::awaitable<absl::Status> ReadBody(Landing landing, bool hashed);
  asio::awaitable<absl::Status> ReadTrailer();
  asio::awaitable<absl::Status> Receive(std::byte* to, std::size_t size);
  std::size_t TakeBuffered(std::byte* to, std::size_t size);
  absl::Status ReadError(const error_code& error) const;

  void End(const absl::Status& why, const absl::Status& sends_end_with);

  asio::io_context& io_;
  const Endpoint peer_;
  const BodyChecksums body_checksums_;
  bool hash_bodies_;  // until the socket says better
  const Nanos spin_;
  std::optional<tcp::socket> socket_;
  std::optional<RingStream> ring_;
  WireSink* sink_ = nullptr;
  bool reading_ = false;
  bool writing_ = false;
  absl::Status ended_;       // why, once it has; every wait checks it
  absl::Status send_error_;  // of what is queued; may come before ended_: the reader still takes
                             // what had arrived

  std::deque<Outgoing> queue_;
  Checksum write_checksum_;

  std::vector<std::byte> buffer_;  // bytes read ahead: small messages cost one call for many
  std::size_t buffered_begin_ = 0;
  std::size_t buffered_end_ = 0;
  bool inside_message_ = false;
  Checksum read_checksum_;
  WireCounters counters_;
};

}  // namespace ranklab::transport
