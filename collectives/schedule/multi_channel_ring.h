// Several rings side by side, each over a slice of the buffer in a channel of its own: what one
// connection cannot carry, several do.
#pragma once

#include <absl/status/statusor.h>

#include "collectives/schedule/build_options.h"
#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

// All-reduce in `options.channels` channels, C. Steps: 2(P-1), each of C messages; bytes sent per
// rank: 2S(P-1)/P.
// Source: NVIDIA NCCL, src/graph/rings.cc (channels).
// Errors: as BuildRingAllReduce; InvalidArgument, channels outside of 1 to 64, or more than
// kMostChunks in all of them.
absl::StatusOr<Schedule> BuildMultiChannelRing(const BuildOptions& options);

}  // namespace ranklab::collectives
