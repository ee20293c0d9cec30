// Plays a schedule on a topology under a network model: what the links in between do to it. For
// ideal ports and scale there is sim/schedule_player.
#pragma once

#include <cstdint>
#include <vector>

#include <absl/status/statusor.h>

#include "collectives/schedule/schedule.h"
#include "fabric/topology/graph.h"
#include "sim/network/network_model.h"

namespace ranklab::sim {

struct PlayedOnNetwork {
  double ends = 0;  // seconds after the start, when the last rank is done
  std::vector<double> rank_ends;
  std::int64_t messages = 0;
  std::vector<double> link_bytes;  // [link]
};

// Rank r of the schedule is rank r of the topology. A message begins as soon as its send may:
// nothing queues but in the network. A send has finished when its message has arrived; summing and
// local copies take no time. `seed` picks among equal paths. Errors: InvalidArgument, fewer ranks
// in the topology than in the group; FailedPrecondition, as PlaySchedule.
absl::StatusOr<PlayedOnNetwork> PlayOnNetwork(const collectives::Schedule& schedule, double size,
                                              const fabric::GraphTopology& topology,
                                              NetworkModel& network, std::uint64_t seed);

}  // namespace ranklab::sim
