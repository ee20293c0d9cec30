// The Wire that a TcpPort opens. On the loop.
#pragma once

#include <map>
#include <memory>
#include <string>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "core/endpoint.h"
#include "core/event_loop.h"
#include "transport/tcp/asio.h"
#include "transport/tcp/connection.h"
#include "transport/tcp/greeting.h"
#include "transport/tcp/live_loop.h"
#include "transport/wire.h"

namespace ranklab::transport {

// The connections of one generation: dials the greater peers, is handed the sockets of the smaller
// ones by the port. Shared with the coroutines that dial.
class TcpConnections : public std::enable_shared_from_this<TcpConnections> {
 public:
  TcpConnections(LiveLoop& loop, const WireOptions& options, BodyChecksums body_checksums,
                 DoneFn ready);

  // After construction, once.
  void Start();

  // May the dialer join? If so, Attach its socket once the answer is on its way.
  Answer Consider(const Hello& hello) const;
  void Attach(Endpoint peer, tcp::socket socket, std::unique_ptr<SharedSegment> segment);

  // The memory that the dialer offers to share, opened, or null: then bytes go through the socket.
  std::unique_ptr<SharedSegment> OpenOffered(const Hello& hello, const tcp::socket& socket) const;

  void Deliver(WireSink& sink);
  void Send(Endpoint to, const MessageHeader& header, Payload body, DoneFn sent);
  void Abort(const absl::Status& reason);
  WireCounters counters(Endpoint peer) const;

  Endpoint self() const { return options_.self; }
  std::uint32_t generation() const { return options_.generation; }
  bool aborted() const { return !aborted_.ok(); }

 private:
  struct Missing {
    std::string address;
    std::string problem;                   // of the last attempt
    std::shared_ptr<tcp::socket> attempt;  // closed to end the attempt
  };

  static asio::awaitable<void> Dial(std::shared_ptr<TcpConnections> self, WirePeer peer);
  // The memory that both share now, null if none.
  asio::awaitable<absl::StatusOr<std::unique_ptr<SharedSegment>>> Greet(
      WirePeer peer, std::shared_ptr<tcp::socket> socket);
  std::unique_ptr<SharedSegment> Offer(const tcp::socket& socket) const;
  bool Misses(Endpoint peer) const { return missing_.contains(peer); }
  void FinishOpening(absl::Status status);
  absl::Status DeadlineError() const;

  LiveLoop& loop_;
  const WireOptions options_;
  const Nanos opened_at_;
  std::map<Endpoint, std::shared_ptr<Connection>> connections_;
  std::map<Endpoint, Missing> missing_;
  DoneFn ready_;
  TimerId deadline_ = TimerId::kNone;
  absl::Status aborted_;
};

class TcpWire final : public Wire {
 public:
  explicit TcpWire(std::shared_ptr<TcpConnections> connections);
  ~TcpWire() override;

  Endpoint self() const override;
  void Deliver(WireSink& sink) override;
  void Send(Endpoint to, const MessageHeader& header, Payload body, DoneFn sent) override;
  void Abort(absl::Status reason) override;
  WireCounters counters(Endpoint peer) const override;

 private:
  std::shared_ptr<TcpConnections> connections_;
};

}  // namespace ranklab::transport
