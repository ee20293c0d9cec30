// Makes a wire behave like a path of the modelled fabric. The sender queues a message on its port
// (fabric::LinkModel) and lets it go when the port is free; the receiver queues it on its own port
// and delivers it when its last byte would have arrived. N senders to one receiver thus share the
// receiver's port, in different processes, without a central clock: `departs` travels with the
// message. Credit messages are ours, not the modelled program's: they pass unshaped, and may
// overtake. Why two sides: docs/decisions/0002-two-sided-ports.md.
#pragma once

#include <cstdint>
#include <memory>

#include "core/event_loop.h"
#include "fabric/link_model.h"
#include "transport/shape_meter.h"
#include "transport/wire.h"

namespace ranklab::transport {

struct ShapeOptions {
  // Of every endpoint, each direction, already dilated by time_scale. Its alpha, jitter and loss
  // count once a message, at the sender's side.
  fabric::LinkSpec port;
  std::uint64_t seed = 0;  // for jitter and loss; each endpoint and link draws its own stream
  Nanos clock_offset{};    // cluster's clock = loop's clock + offset
};

// A Wire: contracts as there. `sent` runs when the last byte has left the modelled port and the
// inner wire has let go of the body, whichever is later. A peer's loss is reported after its
// messages that are due within a second.
class ShapedWire final : public Wire {
 public:
  ShapedWire(EventLoop& loop, std::unique_ptr<Wire> inner, const ShapeOptions& options);
  ~ShapedWire() override;

  Endpoint self() const override;
  void Deliver(WireSink& sink) override;
  void Send(Endpoint to, const MessageHeader& header, Payload body, DoneFn sent) override;
  void Abort(absl::Status reason) override;
  WireCounters counters(Endpoint peer) const override;  // of the inner wire: what really crossed

  // A link of its own between this endpoint and `peer`, in the direction from here, on top of both
  // ports; an injection reshapes it. Dilated like the ports. Holds for messages sent from now on.
  void ShapeLink(Endpoint peer, const fabric::LinkSpec& spec);
  // The same in the direction from `peer`, for one that does not shape its own side.
  void ShapeLinkFrom(Endpoint peer, const fabric::LinkSpec& spec);
  void ResetLinks();

  ShapeReport Report() const;

 private:
  class Core;
  std::shared_ptr<Core> core_;  // shared with the callbacks that run while it is destroyed
};

}  // namespace ranklab::transport
