// Wires between endpoints of one process, on one loop: for tests on virtual time and for the
// simulator's small worlds. Bytes are copied; a null body moves only its size.
#pragma once

#include <map>
#include <memory>

#include "transport/wire.h"

namespace ranklab::transport {

class LocalNetwork {
 public:
  explicit LocalNetwork(EventLoop& loop);
  ~LocalNetwork();

  // The wire of `self`. Every pair of wires of one network is connected.
  std::unique_ptr<Wire> Connect(Endpoint self);

  // As if the process at `endpoint` had died: its peers' sinks see Lost.
  void Disconnect(Endpoint endpoint);

 private:
  friend class LocalWire;
  class Core;
  std::shared_ptr<Core> core_;
};

}  // namespace ranklab::transport
