// Two rings at once: the first half of the buffer goes up the ranks, the second half down.
#pragma once

#include <absl/status/statusor.h>

#include "collectives/schedule/build_options.h"
#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

// All-reduce. Steps: 2(P-1), each a message to both neighbours; bytes sent per rank: 2S(P-1)/P,
// half of them each way. Pays where the two neighbours are reached through two ports. Source: as
// ring.h; both directions: Jain et al., "Optimal bucket algorithms for large MPI collectives on
// torus interconnects", ICS 2010. Errors: as BuildRingAllReduce.
absl::StatusOr<Schedule> BuildBidirectionalRing(const BuildOptions& options);

}  // namespace ranklab::collectives
