// How long a small message takes through this generation's real wire, while every rank does the
// same: the floor under a modelled latency.
#pragma once

#include <absl/status/statusor.h>

#include "core/event_loop.h"
#include "core/units.h"
#include "transport/messenger.h"

namespace ranklab::worker {

struct WireProbeOptions {
  std::uint32_t generation = 0;
  Rank rank = 0;
  int ranks = 2;
  Nanos timeout = std::chrono::seconds(10);
};

// Median of 32 hops of a ring: one message to the next rank and one from the previous, by all ranks
// at once. Blocks the calling thread, not the loop. Requires: ranks >= 2, all of which call it.
// Errors: as Transport; DeadlineExceeded, naming the neighbours.
absl::StatusOr<Nanos> ProbeWireLatency(EventLoop& loop, transport::Messenger& messenger,
                                       const WireProbeOptions& options);

}  // namespace ranklab::worker
