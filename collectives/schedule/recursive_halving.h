// The two halves of Rabenseifner's algorithm as collectives of their own, over one block a rank.
#pragma once

#include <absl/status/statusor.h>

#include "collectives/schedule/build_options.h"
#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

// L = floor(log2 P). Steps: L, and 2 more unless P is a power of two, when the odd rank of a pair
// gives all it has to the even one and gets its result from it (folding.h). Bytes sent per rank:
// S(P-1)/P for P = 2^L, else at most 2S.
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 19(1), 2005.
// Errors: as CheckBuildOptions.
absl::StatusOr<Schedule> BuildRecursiveReduceScatter(const BuildOptions& options);  // halving
absl::StatusOr<Schedule> BuildRecursiveAllGather(const BuildOptions& options);      // doubling

}  // namespace ranklab::collectives
