// All-to-all by P-1 exchanges: in step s every rank sends to the rank s after it and receives from
// the rank s before it, so that no port has two messages at a time.
#pragma once

#include <absl/status/statusor.h>

#include "collectives/schedule/build_options.h"
#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

// Steps: P-1; bytes sent per rank: S(P-1)/P, S being all data of one rank. No scratch, so blocks of
// any sizes will do: all-to-all-v is the same schedule.
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 19(1), 2005.
// Errors: as CheckBuildOptions.
absl::StatusOr<Schedule> BuildPairwiseAllToAll(const BuildOptions& options);
absl::StatusOr<Schedule> BuildPairwiseAllToAllV(const BuildOptions& options);

}  // namespace ranklab::collectives
