#include "collectives/schedule/build_options.h"

#include "core/status.h"

namespace ranklab::collectives {

absl::Status CheckBuildOptions(const BuildOptions& options, int most_ranks) {
  if (options.group_size < 1 || options.group_size > most_ranks) {
    return InvalidArgument("a group of %d ranks: it must have 1 to %d", options.group_size,
                           most_ranks);
  }
  if (options.chunks_per_rank < 1 ||
      std::int64_t{options.group_size} * options.chunks_per_rank > kMostChunks) {
    return InvalidArgument(
        "%d chunks a rank, %d ranks: chunks must be at least 1, their product at most 2^24",
        options.chunks_per_rank, options.group_size);
  }
  if (options.root < 0 || options.root >= options.group_size) {
    return InvalidArgument("root %d is none of the ranks 0 to %d", options.root,
                           options.group_size - 1);
  }
  return absl::OkStatus();
}

}  // namespace ranklab::collectives
