// Plays a whole schedule on an ideal network in virtual time: ports, latency and reductions as
// fabric/collective_cost.h models them, no bytes. Exact and lean, for closed forms, sweeps and
// large groups; the executor on sim/virtual_loop is the slow player that runs what ships.
#pragma once

#include <cstdint>
#include <vector>

#include <absl/status/statusor.h>

#include "collectives/schedule/schedule.h"
#include "fabric/collective_cost.h"

namespace ranklab::sim {

struct Played {
  double ends = 0;                // seconds after the start, when the last rank is done
  std::vector<double> rank_ends;  // each rank's last op
  std::int64_t messages = 0;
};

// All ranks begin at 0. `size`: bytes of the larger of input and output, cut into equal chunks,
// also of a fraction of a byte. A port sends one message at a time, in the order in which they
// became ready; a rank and port reduces one at a time; local copies take no time. Ties go by the
// order of ranks and lists, so the same call gives the same times. Errors: FailedPrecondition, a
// message without its other end, or ops that wait for ever: what Verify would have refused. Cost:
// O(messages log messages) time, O(ops) memory.
absl::StatusOr<Played> PlaySchedule(const collectives::Schedule& schedule, double size,
                                    const fabric::CostModel& model);

}  // namespace ranklab::sim
