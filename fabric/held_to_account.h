// Did a shaped run behave like the network it names? The figures of one endpoint against what the
// model claims; what every record says, and what must fail when the shaping is broken.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/units.h"
#include "fabric/link_model.h"

namespace ranklab::fabric {

// What the run should have been.
struct NetworkClaim {
  LinkSpec port;            // dilated: as on this machine's clock
  Bytes body_received = 0;  // that the exchange's arithmetic says this endpoint receives
};

// What one endpoint saw (transport::ShapeReport and WireCounters), in dilated time. A median over
// no messages is 0 with a count of 0.
struct NetworkFigures {
  double bandwidth_median = 0;  // bytes per second, of large messages
  std::int64_t bandwidth_samples = 0;
  Nanos latency_median{};  // of small messages, without their bytes' own time
  std::int64_t latency_samples = 0;
  Bytes body_received = 0;  // counted at the connections
};

struct NetworkVerdict {
  bool bandwidth_held = false;        // within 5 % of the port's
  bool latency_held = false;          // within max(5 %, 0.2 ms) of the port's alpha
  bool bytes_held = false;            // exactly the claim
  std::vector<std::string> findings;  // one sentence for each that did not hold

  bool held() const { return bandwidth_held && latency_held && bytes_held; }
};

// Bandwidth and latency hold vacuously only where the claim moves no bytes at all; where it does,
// an endpoint needs samples of large or of small messages, and those it has must hold.
NetworkVerdict HoldToAccount(const NetworkClaim& claim, const NetworkFigures& figures);

}  // namespace ranklab::fabric
