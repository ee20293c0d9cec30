// Schedules as text.
#pragma once

#include <string>

#include <absl/status/statusor.h>

#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

// "recv-reduce chunk 3 from rank 2", "send chunks 4-7 to rank 0 in channel 1".
std::string PrintOp(const Op& op);

// "rank 1, op 3 (recv-reduce chunk 3 from rank 0)": how messages name it.
std::string NameOfOp(Rank rank, OpIndex index, const Op& op);

// A head line, then for each rank its ops, one a line, with what they wait for.
std::string PrintSchedule(const Schedule& schedule);

// The same as a graph for Graphviz's dot: a cluster a rank, an edge for what an op waits for, a
// bold one for each message. Errors: as PairMessages.
absl::StatusOr<std::string> PrintGraph(const Schedule& schedule);

}  // namespace ranklab::collectives
