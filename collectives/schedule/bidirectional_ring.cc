#include "collectives/schedule/bidirectional_ring.h"

#include <utility>

#include "collectives/schedule/in_channels.h"
#include "collectives/schedule/ring.h"
#include "core/status.h"

namespace ranklab::collectives {

absl::StatusOr<Schedule> BuildBidirectionalRing(const BuildOptions& options) {
  ASSIGN_OR_RETURN(Schedule ring, BuildRingAllReduce(options));
  ring.name = "bidirectional_ring";
  return InChannels(std::move(ring), {.slices = 2, .mirror_odd = true});
}

}  // namespace ranklab::collectives
