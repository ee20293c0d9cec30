// Brings an endpoint together with its peers of one generation: dials the larger ones, admits the
// smaller ones, a Hello in each direction, until all streams stand or the deadline has passed.
// Pure: streams come from a function, time from the loop.
//
//   smaller endpoint            larger endpoint
//     Stream opened   ------->
//     Hello           ------->  magic, secret, generation, to: admitted, or the stream is ended
//                     <-------  Hello
//     joined                    joined
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/event_loop.h"
#include "transport/grpc/frame_stream.h"
#include "transport/wire.h"

namespace ranklab::transport {

// All calls on the loop.
class Rendezvous {
 public:
  using DialFn = std::function<std::shared_ptr<FrameStream>(const std::string& address)>;
  // The peer's stream stands; both hellos are through, no read or write is open.
  using JoinedFn = std::function<void(Endpoint peer, std::shared_ptr<FrameStream> stream)>;

  // `ready` runs once, never inline: Ok; DeadlineExceeded, with the missing peers and addresses;
  // PermissionDenied, FailedPrecondition or AlreadyExists, what a peer refused us for (trying
  // again would not help); Unavailable, a peer was lost before the others stood; what Cancel says.
  Rendezvous(EventLoop& loop, const WireOptions& options, DialFn dial, JoinedFn joined,
             DoneFn ready);
  ~Rendezvous();

  std::uint32_t generation() const { return options_.generation; }

  // A stream that somebody opened here, and the hello that was read from it. Not Ok: the refusal.
  absl::Status Admit(const std::shared_ptr<FrameStream>& stream, const Hello& hello);

  // A joined peer is gone.
  void Lost(const absl::Status& why);

  // Joins nobody any more.
  void Cancel(const absl::Status& reason);

 private:
  class Handshake;

  void Dial(const WirePeer& peer);
  void DialAgainLater(const WirePeer& peer);
  void Join(Endpoint peer);
  void HandshakeEnded(const WirePeer& peer, bool dialed, const absl::Status& why);
  absl::Status Examine(const Hello& hello) const;
  void Finish(const absl::Status& status);
  absl::Status Missing() const;

  EventLoop& loop_;
  const WireOptions options_;
  const DialFn dial_;
  const JoinedFn joined_;
  DoneFn ready_;  // null once it has run
  TimerId deadline_ = TimerId::kNone;
  std::map<Endpoint, std::unique_ptr<Handshake>> handshakes_;
  std::map<Endpoint, TimerId> redials_;
  std::map<Endpoint, WirePeer> missing_;  // neither joined nor given up
};

}  // namespace ranklab::transport
