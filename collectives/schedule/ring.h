// Collectives around a ring: rank r sends to r + 1 and receives from r - 1 only.
//
//   reduce-scatter, step s of P-1       all-gather, step t of P-1
//   r sends block r-s-1, reduces into   r sends block r-t, receives block r-t-1
//   block r-s-2 what r-1 sends
//
// Block r starts its way at rank r+1, is summed in the order r+1, r+2, ..., r and ends at rank r:
// the order of the reduction is fixed, so all ranks end with the same bits, in every run.
#pragma once

#include <absl/status/statusor.h>

#include "collectives/schedule/build_options.h"
#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

// All-reduce as reduce-scatter, then all-gather. Steps: 2(P-1); bytes sent per rank: 2S(P-1)/P.
// Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", JPDC 69(2), 2009.
// Errors: as CheckBuildOptions; any group size that fits an int.
absl::StatusOr<Schedule> BuildRingAllReduce(const BuildOptions& options);

// Its two halves: pieces of a block are pipelined in all three. Steps: P-1 each; bytes sent per
// rank: S(P-1)/P. In place: rank r ends with, or starts from, the chunks [r c, (r+1) c) of P c, c =
// chunks_per_rank.
absl::StatusOr<Schedule> BuildRingReduceScatter(const BuildOptions& options);
absl::StatusOr<Schedule> BuildRingAllGather(const BuildOptions& options);

}  // namespace ranklab::collectives
