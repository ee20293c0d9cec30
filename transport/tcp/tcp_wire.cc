#include "transport/tcp/tcp_wire.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "core/check.h"
#include "core/seconds.h"
#include "core/status.h"
#include "transport/tcp/sockets.h"

namespace ranklab::transport {
namespace {

// Between attempts: a peer that starts at the same time is met soon, one that is late costs little.
constexpr Nanos kFirstPause = std::chrono::milliseconds(1);
constexpr Nanos kLongestPause = std::chrono::milliseconds(100);

absl::Status AttemptError(const error_code& error, const char* doing) {
  return Unavailable("%s: %s", doing, error.message());
}

// A system that is asked to connect to a port of its own that nobody listens on may connect the
// socket to itself.
bool ConnectedToItself(const tcp::socket& socket) {
  error_code local_error, remote_error;
  const tcp::endpoint local = socket.local_endpoint(local_error);
  const tcp::endpoint remote = socket.remote_endpoint(remote_error);
  return !local_error && !remote_error && local == remote;
}

}  // namespace

TcpConnections::TcpConnections(LiveLoop& loop, const WireOptions& options,
                               BodyChecksums body_checksums, DoneFn ready)
    : loop_(loop), options_(options), opened_at_(loop.Now()), ready_(std::move(ready)) {
  for (const WirePeer& peer : options_.peers) {
    RANKLAB_CHECK(peer.endpoint != options_.self, "%s among its own peers", NameOf(options_.self));
    connections_[peer.endpoint] = std::make_shared<Connection>(loop_.io_context(), peer.endpoint,
                                                               body_checksums, loop.spin());
    missing_[peer.endpoint] = {
        peer.address, peer.endpoint < options_.self ? "it has not dialed" : "not tried", nullptr};
  }
  RANKLAB_CHECK(connections_.size() == options_.peers.size(), "a peer is listed twice");
}

void TcpConnections::Start() {
  if (missing_.empty()) {
    loop_.Post([self = shared_from_this()] { self->FinishOpening(absl::OkStatus()); });
    return;
  }
  deadline_ = loop_.RunAt(options_.deadline, [self = shared_from_this()] {
    self->FinishOpening(self->DeadlineError());
  });
  for (const WirePeer& peer : options_.peers) {
    if (options_.self < peer.endpoint) {
      asio::co_spawn(loop_.io_context(), Dial(shared_from_this(), peer), asio::detached);
    }
  }
}

asio::awaitable<void> TcpConnections::Dial(std::shared_ptr<TcpConnections> self, WirePeer peer) {
  asio::steady_timer timer(self->loop_.io_context());
  for (Nanos pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    timer.expires_after(pause);
    co_await timer.async_wait(kAwait);
    if (!self->Misses(peer.endpoint)) {
      co_return;  // too late, or aborted
    }
    const auto socket = std::make_shared<tcp::socket>(self->loop_.io_context());
    self->missing_[peer.endpoint].attempt = socket;
    absl::StatusOr<std::unique_ptr<SharedSegment>> segment = co_await self->Greet(peer, socket);
    if (!self->Misses(peer.endpoint)) {
      co_return;
    }
    if (segment.ok()) {
      self->Attach(peer.endpoint, std::move(*socket), *std::move(segment));
      co_return;
    }
    self->missing_[peer.endpoint].problem = MessageOf(segment.status());
  }
}

// Ends when the socket is closed from outside, if not before.
asio::awaitable<absl::StatusOr<std::unique_ptr<SharedSegment>>> TcpConnections::Greet(
    WirePeer peer, std::shared_ptr<tcp::socket> socket) {
  const absl::StatusOr<HostPort> address = ParseHostPort(peer.address);
  if (!address.ok()) {
    co_return address.status();
  }
  tcp::resolver resolver(loop_.io_context());
  const auto [resolve_error, found] =
      co_await resolver.async_resolve(address->host, address->port, kAwait);
  if (resolve_error) {
    co_return AttemptError(resolve_error, "looking up the name");
  }
  if (!Misses(peer.endpoint)) {  // closing a socket that is not open yet would have no effect
    co_return Aborted("given up");
  }
  missing_[peer.endpoint].problem = "no connection yet";
  const auto [connect_error, endpoint] = co_await asio::async_connect(*socket, found, kAwait);
  if (connect_error) {
    co_return AttemptError(connect_error, "connecting");
  }
  if (!Misses(peer.endpoint) || ConnectedToItself(*socket)) {
    co_return Unavailable("connecting: nobody listens");
  }
  missing_[peer.endpoint].problem = "connected, but it does not answer";
  TuneSocket(*socket);
  std::unique_ptr<SharedSegment> segment = Offer(*socket);
  const HelloBytes hello =
      EncodeHello({.generation = options_.generation,
                   .secret = options_.secret,
                   .from = options_.self,
                   .to = peer.endpoint,
                   .segment = segment != nullptr ? segment->id() : SegmentId{}});
  const auto [write_error, written] =
      co_await asio::async_write(*socket, asio::buffer(hello), kAwait);
  if (write_error) {
    co_return AttemptError(write_error, "greeting");
  }
  AnswerBytes bytes;
  const auto [read_error, received] =
      co_await asio::async_read(*socket, asio::buffer(bytes), kAwait);
  if (read_error) {
    co_return AttemptError(read_error, "waiting for its answer");
  }
  const absl::StatusOr<Answer> answer = DecodeAnswer(bytes);
  if (!answer.ok()) {
    co_return answer.status();
  }
  if (!IsWelcome(*answer)) {
    co_return Unavailable("it refuses %s: %s", NameOf(options_.self), ReasonOf(*answer));
  }
  if (*answer == Answer::kWelcome || segment == nullptr) {
    co_return nullptr;
  }
  segment->WithdrawOffer();
  co_return segment;
}

std::unique_ptr<SharedSegment> TcpConnections::Offer(const tcp::socket& socket) const {
  if (!options_.shared_memory || !IsWithinHost(socket)) {
    return nullptr;
  }
  absl::StatusOr<std::unique_ptr<SharedSegment>> segment = SharedSegment::Make(options_.secret);
  return segment.ok() ? *std::move(segment) : nullptr;
}

std::unique_ptr<SharedSegment> TcpConnections::OpenOffered(const Hello& hello,
                                                           const tcp::socket& socket) const {
  if (!options_.shared_memory || hello.segment.process == 0 || !IsWithinHost(socket)) {
    return nullptr;
  }
  auto segment = SharedSegment::Open(hello.segment, options_.secret);
  return segment.ok() ? *std::move(segment) : nullptr;
}

Answer TcpConnections::Consider(const Hello& hello) const {
  if (hello.secret != options_.secret) {
    return Answer::kWrongSecret;
  }
  if (hello.to != options_.self || !(hello.from < options_.self) ||
      !connections_.contains(hello.from)) {
    return Answer::kNotExpected;
  }
  if (aborted()) {
    return Answer::kOtherGeneration;
  }
  return Misses(hello.from) ? Answer::kWelcome : Answer::kAlreadyConnected;
}

void TcpConnections::Attach(Endpoint peer, tcp::socket socket,
                            std::unique_ptr<SharedSegment> segment) {
  const std::size_t found = missing_.erase(peer);
  RANKLAB_CHECK(found == 1, "%s", NameOf(peer));
  connections_.at(peer)->Attach(std::move(socket), std::move(segment));
  if (missing_.empty()) {
    FinishOpening(absl::OkStatus());
  }
}

// Once: by the last connection, the deadline or Abort. Stops dialing.
void TcpConnections::FinishOpening(absl::Status status) {
  if (!ready_) {
    return;
  }
  loop_.Cancel(deadline_);
  std::map<Endpoint, Missing> given_up = std::exchange(missing_, {});
  for (auto& [peer, missing] : given_up) {
    if (missing.attempt != nullptr) {
      error_code ignored;
      missing.attempt->close(ignored);
    }
    if (aborted_.ok()) {
      connections_.at(peer)->Abort(Unavailable("%s is not connected", NameOf(peer)));
    }
  }
  loop_.Post([ready = std::exchange(ready_, nullptr), status = std::move(status)]() mutable {
    ready(std::move(status));
  });
}

absl::Status TcpConnections::DeadlineError() const {
  std::string names;
  for (const auto& [peer, missing] : missing_) {
    names += absl::StrFormat("%s%s at %s (%s)", names.empty() ? "" : ", ", NameOf(peer),
                             missing.address, missing.problem);
  }
  return DeadlineExceeded("waited %.3g s for %s", SecondsOf(loop_.Now() - opened_at_), names);
}

void TcpConnections::Deliver(WireSink& sink) {
  for (auto& [peer, connection] : connections_) {
    connection->Deliver(sink);
  }
}

void TcpConnections::Send(Endpoint to, const MessageHeader& header, Payload body, DoneFn sent) {
  const auto found = connections_.find(to);
  if (!aborted() && found != connections_.end()) {
    found->second->Send(header, body, std::move(sent));
    return;
  }
  absl::Status why = aborted_;
  if (why.ok()) {
    why = Unavailable("%s is not among the peers of this generation", NameOf(to));
  }
  loop_.Post([sent = std::move(sent), why = std::move(why)]() mutable { sent(std::move(why)); });
}

void TcpConnections::Abort(const absl::Status& reason) {
  RANKLAB_CHECK(!reason.ok());
  if (aborted()) {
    return;
  }
  aborted_ = reason;
  for (auto& [peer, connection] : connections_) {
    connection->Abort(reason);
  }
  FinishOpening(reason);
}

WireCounters TcpConnections::counters(Endpoint peer) const {
  const auto found = connections_.find(peer);
  return found == connections_.end() ? WireCounters{} : found->second->counters();
}

TcpWire::TcpWire(std::shared_ptr<TcpConnections> connections)
    : connections_(std::move(connections)) {}

TcpWire::~TcpWire() { connections_->Abort(Aborted("the wire was closed")); }

Endpoint TcpWire::self() const { return connections_->self(); }

void TcpWire::Deliver(WireSink& sink) { connections_->Deliver(sink); }

void TcpWire::Send(Endpoint to, const MessageHeader& header, Payload body, DoneFn sent) {
  connections_->Send(to, header, body, std::move(sent));
}

void TcpWire::Abort(absl::Status reason) { connections_->Abort(reason); }

WireCounters TcpWire::counters(Endpoint peer) const { return connections_->counters(peer); }

}  // namespace ranklab::transport
