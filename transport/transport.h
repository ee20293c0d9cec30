// One process's end of the wires to all its peers, for one generation of the job: when the
// membership changes, the object is aborted and a new one is made.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

#include <absl/status/status.h>

#include "core/endpoint.h"
#include "core/event_loop.h"
#include "core/units.h"

namespace ranklab::transport {

// Names a message; travels with it on every wire. Messages of one (sender, receiver, lane) arrive
// in the order sent; lanes do not order or block each other.
struct Envelope {
  std::uint32_t generation = 0;  // of another generation: dropped and counted
  std::uint32_t group = 0;       // process group; 0 is the world
  std::uint64_t sequence = 0;    // of the collective or transfer within the group
  std::uint32_t lane = 0;        // channel of a schedule, or a point-to-point tag
  std::uint32_t part = 0;        // position of the message in the sender's list for this lane

  friend auto operator<=>(const Envelope&, const Envelope&) = default;
};

// Borrowed bytes. `data` may be null: then only the size travels (the simulator's messages).
struct Payload {
  const std::byte* data = nullptr;
  Bytes size = 0;
};
struct Landing {
  std::byte* data = nullptr;
  Bytes size = 0;
};

// Posted sends and receives: what collectives and pipeline stages need. Small messages may arrive
// before their receive is posted and are kept, up to an eager limit per peer; larger ones wait for
// the credit that a posted receive gives, so that memory is bounded and no lane blocks another.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual Endpoint self() const = 0;

  // The bytes must stay valid until `done` runs. Ok means handed to the wire, not yet received.
  // Errors (through `done`): Unavailable, the peer is gone; Aborted, Abort() was called.
  virtual void Send(Endpoint to, const Envelope& envelope, Payload payload, DoneFn done) = 0;

  // Errors (through `done`): as Send; InvalidArgument, the message's size is not into.size.
  virtual void Recv(Endpoint from, const Envelope& envelope, Landing into, DoneFn done) = 0;

  // Ends every pending and later operation with `reason`.
  virtual void Abort(absl::Status reason) = 0;
};

}  // namespace ranklab::transport
