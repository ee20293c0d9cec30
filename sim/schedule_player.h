// Plays a whole schedule on an ideal network in virtual time: ports, latency and reductions as
// fabric/collective_cost.h models them, no bytes. Exact and lean, for closed forms, sweeps and
// large groups; the executor on sim/virtual_loop is the slow player that runs what ships.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "collectives/schedule/schedule.h"
#include "fabric/collective_cost.h"
#include "sim/disturbances.h"

namespace ranklab::sim {

struct PlayOptions {
  Disturbances disturbances{};
  // One rank is played for all that do the same (sim/rank_classes.h): the same times, to the bit.
  bool fold = true;
  std::int64_t most_ops = 150'000'000;  // played, not stood for: 8 bytes each
};

struct Played {
  double ends = 0;                // seconds after the start, when the last rank is done
  std::vector<double> rank_ends;  // each rank's last op
  std::int64_t messages = 0;      // of the whole group
  std::int64_t messages_played = 0;
  int ranks_played = 0;
  std::string not_folded;  // why every rank was played; empty where that was not so, or not asked
};

// All ranks begin at 0 but for those that are late. `size`: bytes of the larger of input and
// output, cut into equal chunks, also of a fraction of a byte. A port sends one message at a time,
// in the order in which they became ready, of one instant in list order; it receives one at a time,
// in the order in which they reach it, of one instant in the receiver's list order; a rank and port
// reduces one at a time; local copies take no time. No tie is decided by a rank's number, so that
// ranks that do the same stay alike.
// Errors: InvalidArgument, a disturbance that names no rank of the group or makes no sense;
// ResourceExhausted, more ops than `most_ops`; FailedPrecondition, a message without its other
// end, or ops that wait for ever: what Verify would have refused. Cost of what is played:
// O(messages log instants) time, O(ops) memory.
absl::StatusOr<Played> PlaySchedule(const collectives::Schedule& schedule, double size,
                                    const fabric::CostModel& model,
                                    const PlayOptions& options = {});

}  // namespace ranklab::sim
