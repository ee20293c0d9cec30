// Transport, Requester and Responder over any Wire: matching of posted receives, the eager limit
// and credit, request ids. Pure: no sockets, no clock of its own.
#pragma once

#include <memory>

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
};

// All calls and callbacks on the loop. Must outlive neither loop nor wire.
class Messenger final : public Transport, public Requester, public Responder {
 public:
  Messenger(EventLoop& loop, Wire& wire, const MessengerOptions& options);
  ~Messenger() override;

  Endpoint self() const override;
  void Send(Endpoint to, const Envelope& envelope, Payload payload, DoneFn done) override;
  void Recv(Endpoint from, const Envelope& envelope, Landing into, DoneFn done) override;

  // Also ends pending calls, and aborts the wire.
  void Abort(absl::Status reason) override;

  void Call(Endpoint to, const RequestHeader& header, Payload body, Landing reply,
            AnsweredFn done) override;
  void Serve(RequestFn handler) override;

  // Runs once for each peer that is lost, before its operations end with Unavailable.
  void OnLost(absl::AnyInvocable<void(Endpoint, const absl::Status&)> lost);

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace ranklab::transport
