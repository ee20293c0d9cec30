// The machine behind Messenger. Only messenger.cc includes it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include <absl/functional/any_invocable.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "core/endpoint.h"
#include "core/event_loop.h"
#include "transport/buffer_pool.h"
#include "transport/calls.h"
#include "transport/mailbox.h"
#include "transport/messenger.h"

namespace ranklab::transport {

// Ends callbacks through Post, and calls out last, so that a callback may do anything, even abort
// or destroy the messenger.
class Messenger::Core final : public WireSink, public std::enable_shared_from_this<Core> {
 public:
  Core(EventLoop& loop, Wire& wire, const MessengerOptions& options)
      : loop_(loop), wire_(wire), self_(wire.self()), options_(options), pool_(kIdleBufferBytes) {}

  void Send(Endpoint to, const Envelope& envelope, Payload payload, DoneFn done);
  void Recv(Endpoint from, const Envelope& envelope, Landing into, DoneFn done);
  void Abort(const absl::Status& reason);
  void Call(Endpoint to, const RequestHeader& header, Payload body, Landing reply, AnsweredFn done);
  void Answer(Endpoint to, std::uint64_t id, absl::StatusOr<ReplyHeader> reply, Payload body,
              DoneFn sent);

  absl::StatusOr<Acceptance> Accept(Endpoint from, const MessageHeader& header) override;
  void Arrived(Endpoint from, const MessageHeader& header, std::uint64_t token) override;
  void Lost(Endpoint peer, absl::Status why) override;

  EventLoop& loop() { return loop_; }
  Endpoint self() const { return self_; }
  std::int64_t dropped_messages() const { return dropped_messages_; }
  RequestFn serve;
  BodyLandingFn body_landing;
  absl::AnyInvocable<void(Endpoint, const absl::Status&)> on_lost;

 private:
  static constexpr Bytes kIdleBufferBytes = 32 << 20;

  struct ArrivingRequest {
    Buffer buffer;  // empty where the service gave the landing
    Landing landing;
  };
  struct Peer {
    explicit Peer(Mailbox posted) : mail(std::move(posted)) {}
    Mailbox mail;
    absl::Status lost;
    Calls calls;
    std::map<std::uint64_t, ArrivingRequest> requests;  // by token
  };

  Peer& PeerAt(Endpoint endpoint);
  absl::Status WhyNot(const Peer& peer) const { return aborted_.ok() ? peer.lost : aborted_; }
  bool OtherGeneration(const MessageHeader& header) const {
    return header.envelope.generation != options_.generation;
  }
  void PostDone(DoneFn done, absl::Status status);
  void Transmit(Endpoint to, Mailbox::Outgoing message);
  void NoLongerHeld(std::size_t messages);
  void TellHeldAfter(Nanos pause);
  void TellHeld(Nanos paused);
  void SendControl(Endpoint to, MessageKind kind, const Envelope& envelope);
  void End(Peer& peer, const absl::Status& why);
  absl::StatusOr<Acceptance> AcceptRequest(Endpoint from, const MessageHeader& header);
  void ArrivedRequest(Endpoint from, const MessageHeader& header, std::uint64_t token);
  void ArrivedReply(Endpoint from, const MessageHeader& header);
  void PostAnswered(AnsweredCall call);

  EventLoop& loop_;
  Wire& wire_;  // not used once aborted: it may be gone before this
  const Endpoint self_;
  const MessengerOptions options_;
  BufferPool pool_;
  std::map<Endpoint, Peer> peers_;
  absl::Status aborted_;
  std::size_t held_ = 0;  // messages, over all peers
  TimerId held_timer_ = TimerId::kNone;
  std::uint64_t next_token_ = 1;
  std::int64_t dropped_messages_ = 0;
};

}  // namespace ranklab::transport
