// All-reduce by exchanges of the whole buffer: in round k with the rank whose number differs in bit
// k. The fewest rounds, the most bytes: for small buffers.
#pragma once

#include <absl/status/statusor.h>

#include "collectives/schedule/build_options.h"
#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

// L = floor(log2 P). Steps: L, and 2 more unless P is a power of two (folding.h); bytes sent per
// rank: L S, at most (L+1) S.
// Every pair adds the same two values, so all ranks end with the same bits.
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 19(1), 2005.
// Errors: as CheckBuildOptions.
absl::StatusOr<Schedule> BuildRecursiveDoubling(const BuildOptions& options);

}  // namespace ranklab::collectives
