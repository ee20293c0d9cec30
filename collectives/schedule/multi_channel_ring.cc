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
  ring.name = "multi_channel_ring";
  return InChannels(std::move(ring), {.slices = options.channels});
}

}  // namespace ranklab::collectives
