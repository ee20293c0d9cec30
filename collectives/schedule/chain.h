// A broadcast along a line of ranks, in pieces: each piece moves on as soon as it is there.
#pragma once

#include <absl/status/statusor.h>

#include "collectives/schedule/build_options.h"
#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

// K = P chunks_per_rank pieces. Steps: P-2+K; bytes sent per rank: S (the last rank: none).
// Source: Sanders and Sibeyn, "A bandwidth latency tradeoff for broadcast and reduction", IPL
// 86(1), 2003. Errors: as CheckBuildOptions.
absl::StatusOr<Schedule> BuildChainBroadcast(const BuildOptions& options);

}  // namespace ranklab::collectives
