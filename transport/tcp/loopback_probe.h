// What this machine's loopback carries, measured with plain sockets: the ground that a shaped
// network is built on.
#pragma once

#include <absl/status/statusor.h>

#include "core/units.h"

namespace ranklab::transport {

struct LoopbackFigures {
  double bytes_per_second = 0;  // one stream, one way
  Nanos latency{};              // half of the median round trip of one byte
};

// Takes about 30 ms, blocks the calling thread and uses one more. Several processes that probe at
// once share the machine, and find what they can have at once.
// Errors: Unavailable, the system refuses sockets.
absl::StatusOr<LoopbackFigures> ProbeLoopback();

}  // namespace ranklab::transport
