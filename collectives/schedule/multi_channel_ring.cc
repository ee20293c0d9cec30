#include "collectives/schedule/multi_channel_ring.h"

#include <utility>

#include "collectives/schedule/in_channels.h"
#include "collectives/schedule/ring.h"
#include "core/status.h"

namespace ranklab::collectives {

absl::StatusOr<Schedule> BuildMultiChannelRing(const BuildOptions& options) {
  if (options.channels < 1 || options.channels > 64) {
    return InvalidArgument("%d channels: a multi-channel ring has 1 to 64", options.channels);
  }
  ASSIGN_OR_RETURN(Schedule ring, BuildRingAllReduce(options));
  if (std::int64_t{ring.input_chunks} * options.channels > kMostChunks) {
    return InvalidArgument("%d chunks a rank, %d ranks, %d channels: their product is above 2^24",
                           options.chunks_per_rank, options.group_size, options.channels);
  }
  ring.name = "multi_channel_ring";
  return InChannels(std::move(ring), {.slices = options.channels});
}

}  // namespace ranklab::collectives
