// All-reduce by recursive halving and doubling: in each round of the first half a rank keeps and
// reduces half of what it still has; the second half brings the halves back together.
#pragma once

#include <absl/status/statusor.h>

#include "collectives/schedule/build_options.h"
#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

// L = floor(log2 P), Q = 2^L. Steps: 2L, and 3 more unless P is a power of two, when pairs share
// the first reduction (folding.h); bytes sent per rank: 2S(Q-1)/Q, at most 2S(Q-1)/Q + 3S/2.
// Source: Rabenseifner, "Optimization of collective reduction operations", ICCS 2004.
// Errors: as CheckBuildOptions.
absl::StatusOr<Schedule> BuildRabenseifner(const BuildOptions& options);

}  // namespace ranklab::collectives
