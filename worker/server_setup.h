// What a parameter server of a cell is made with, live and simulated.
#pragma once

#include "experiment/lab_spec.h"
#include "ps/shard.h"

namespace ranklab::worker {

// Of server `server`, which holds `range`. Requires: a parameter server's cell.
ps::ShardOptions ShardOptionsOf(const experiment::LabSpec& spec, Rank server, ps::KeyRange range);

}  // namespace ranklab::worker
