// Transport, Requester and Responder over any Wire: matching of posted receives, the eager limit
// and credit, request ids. Pure: no sockets, no clock of its own.
#pragma once

#include <cstdint>
#include <memory>

#include <absl/functional/any_invocable.h>
#include <absl/status/status.h>

#include "core/event_loop.h"
#include "transport/requests.h"
#include "transport/transport.h"
#include "transport/wire.h"

namespace ranklab::transport {

struct MessengerOptions {
  std::uint32_t generation = 0;
  Bytes eager_limit = 64 << 10;          // larger messages wait for the receiver's credit
  Bytes eager_bytes_per_peer = 8 << 20;  // unmatched small messages kept; beyond it the peer is
                                         // ended with ResourceExhausted
  Bytes request_limit = 64 << 20;        // body of one request; beyond it the peer is ended
};

// All calls and callbacks on the loop; a callback never runs inside the call that was given it.
// Must outlive neither loop nor wire.
//
// Who waits for whom with a large message (small ones go at once, and are kept if they come early):
//
//   sender                         receiver
//   Send: held                     Recv: posted, into.size > eager_limit
//          <---- kCredit(envelope) ----
//          ---- kPosted + body ------->   lands where Recv said
//
// The receiver decides by the size it expects. So that a message above the limit for a receive
// below it does not wait for ever, a sender that holds one for a second says so (kHeld), and a
// small receive then gives credit too: the message comes, and its receive ends with both sizes.
class Messenger final : public Transport, public Requester, public Responder {
 public:
  Messenger(EventLoop& loop, Wire& wire, const MessengerOptions& options);
  ~Messenger() override;

  Endpoint self() const override;
  void Send(Endpoint to, const Envelope& envelope, Payload payload, DoneFn done) override;
  void Recv(Endpoint from, const Envelope& envelope, Landing into, DoneFn done) override;

  // Also ends pending calls, and aborts the wire. Their bytes are free once their callbacks ran.
  void Abort(absl::Status reason) override;

  void Call(Endpoint to, const RequestHeader& header, Payload body, Landing reply,
            AnsweredFn done) override;
  using Responder::Serve;
  void Serve(RequestFn handler, BodyLandingFn landing) override;

  // Runs once for each peer that is lost, before its operations end with Unavailable.
  void OnLost(absl::AnyInvocable<void(Endpoint, const absl::Status&)> lost);

  // Messages of another generation, and answers that nobody waits for.
  std::int64_t dropped_messages() const;

 private:
  class Core;
  class AnswerSlot;
  std::shared_ptr<Core> core_;  // shared with sends that the wire still holds
};

}  // namespace ranklab::transport
