// What a cell's network was over its repeats, and whether it kept its word.
#pragma once

#include <span>
#include <vector>

#include "experiment/run_record.h"

namespace ranklab::experiment {

// Workers, then servers. Bandwidth and latency are the medians over the repeats of each endpoint's
// own figures, as step times are: one repeat that something else disturbed is not the network's
// word. A repeat that moved other bytes than claimed, or that timed nothing, breaks the word alone.
// Connections are those of the last repeat. All runs are of one cell.
std::vector<NetworkRecord> NetworkOverRepeats(std::span<const CellRun* const> runs);

}  // namespace ranklab::experiment
