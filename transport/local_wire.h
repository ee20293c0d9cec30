// Wires between endpoints of one process, on one loop: for tests on virtual time and for the
// simulator's small worlds. Bytes are copied once, into the receiver's landing; a null body moves
// only its size. Takes no time of its own: ShapedWire adds it.
#pragma once

#include <memory>

#include "core/endpoint.h"
#include "core/event_loop.h"
#include "transport/wire.h"

namespace ranklab::transport {

class LocalNetwork {
 public:
  explicit LocalNetwork(EventLoop& loop);
  ~LocalNetwork();

  // The wire of `self`. Every pair of wires of one network is connected. A second wire of the same
  // endpoint (the next generation's) takes the place of the first.
  std::unique_ptr<Wire> Connect(Endpoint self);

  // As if the process at `endpoint` had died: its peers' sinks see Lost.
  // Requires: `endpoint` is connected.
  void Disconnect(Endpoint endpoint);

  class Core;

 private:
  std::shared_ptr<Core> core_;  // shared with the wires
};

}  // namespace ranklab::transport
