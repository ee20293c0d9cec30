// In round k every rank passes on to the rank 2^k away what that one lacks, in one message: few
// rounds for any group size, at the price of local copies that bring the blocks into order.
#pragma once

#include <absl/status/statusor.h>

#include "collectives/schedule/build_options.h"
#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

// Steps: ceil(log2 P) each. Bytes sent per rank: all-gather S(P-1)/P, with a scratch of S;
// all-to-all (S: all data of one rank) about S/2 in each round, with a scratch of 2S.
// Source: Bruck et al., "Efficient algorithms for all-to-all communications in multiport
// message-passing systems", IEEE TPDS 8(11), 1997.
// Errors: as CheckBuildOptions.
absl::StatusOr<Schedule> BuildBruckAllGather(const BuildOptions& options);
absl::StatusOr<Schedule> BuildBruckAllToAll(const BuildOptions& options);

}  // namespace ranklab::collectives
