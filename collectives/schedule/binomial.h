// Trees in which a rank's children are its number plus 1, 2, 4, ...: a power of two of ranks knows
// after as many rounds. The root is number 0, the others follow it around the group.
#pragma once

#include <absl/status/statusor.h>

#include "collectives/schedule/build_options.h"
#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

// ceil(log2 P) steps each, twice that for all-reduce, which is a reduce to rank 0 and a broadcast.
// Bytes sent: whole buffers along the tree's P-1 edges; the root of a broadcast sends most,
// ceil(log2 P) S. Gather and scatter move each block once an edge: at most S(P-1)/P by one rank; a
// subtree's blocks that go around the end of the group travel as two messages.
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 19(1), 2005.
// Errors: as CheckBuildOptions.
absl::StatusOr<Schedule> BuildBinomialAllReduce(const BuildOptions& options);
absl::StatusOr<Schedule> BuildBinomialBroadcast(const BuildOptions& options);
absl::StatusOr<Schedule> BuildBinomialReduce(const BuildOptions& options);
absl::StatusOr<Schedule> BuildBinomialGather(const BuildOptions& options);
absl::StatusOr<Schedule> BuildBinomialScatter(const BuildOptions& options);

}  // namespace ranklab::collectives
