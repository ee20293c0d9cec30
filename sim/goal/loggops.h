// Plays a GOAL program under LogGOPS: a message costs its sender and its receiver a CPU for o +
// (n-1) O, holds a NIC on each side for g + (n-1) G, and arrives o + L + (n-1) G after its send
// began. It does not depend on other traffic. Messages above S bytes would need a rendezvous, which
// is not modelled. Source: Hoefler, Schneider and Lumsdaine, "LogGOPSim", HPDC 2010; Culler et al.,
// "LogP", PPoPP 1993.
#pragma once

#include <cstdint>
#include <vector>

#include <absl/status/statusor.h>

#include "collectives/schedule/schedule.h"
#include "sim/goal/goal.h"

namespace ranklab::sim {

// Nanoseconds, and nanoseconds a byte; LogGOPSim's defaults.
struct LogGops {
  std::int64_t latency = 2500;
  std::int64_t overhead = 1500;
  std::int64_t gap = 1000;
  std::int64_t gap_per_byte = 6;
  std::int64_t overhead_per_byte = 0;
  std::int64_t most_eager = 65'535;  // bytes
};

// When each rank's last op has ended, in nanoseconds. Ops of one instant go by rank and list.
// Errors: InvalidArgument, a message above most_eager; FailedPrecondition, ops that wait for ever,
// with the first of them.
absl::StatusOr<std::vector<std::int64_t>> PlayGoal(const GoalProgram& program,
                                                   const LogGops& parameters);

// The schedule as a GOAL program, with messages of size / chunks bytes a chunk, rounded up to whole
// bytes; local ops cost nothing. The channel is the tag.
// Errors: ResourceExhausted, more than 2^24 ops.
absl::StatusOr<GoalProgram> GoalOf(const collectives::Schedule& schedule, Bytes size);

}  // namespace ranklab::sim
