// What every builder is asked with. Each reads what it needs; docs/schedules.md says which.
#pragma once

#include <cstdint>

#include <absl/status/status.h>

#include "core/units.h"

namespace ranklab::collectives {

struct BuildOptions {
  int group_size = 0;
  // Pipelining. In a ring and a chain: pieces of a rank's block, in the others that pipeline:
  // pieces of the whole buffer. Algorithms that go round by round have nothing to pipeline and
  // ignore it.
  int chunks_per_rank = 1;
  Rank root = 0;           // of broadcast, reduce, gather and scatter
  int channels = 2;        // multi_channel_ring
  int ranks_per_node = 0;  // hierarchical; 0: its smallest divisor from the square root on
};

// Of a buffer: scratch, slices and the four ops a chunk of a ring multiply it and are still counted
// in an int32.
inline constexpr std::int32_t kMostChunks = 1 << 24;

// Errors: InvalidArgument, a group of none or of more than `most_ranks`, less than one chunk a rank
// or more than kMostChunks in all, a root outside of the group.
absl::Status CheckBuildOptions(const BuildOptions& options, int most_ranks);

// For builders whose lists cost more than their length: see op_list.h.
inline constexpr int kMostListedRanks = 16'384;

}  // namespace ranklab::collectives
