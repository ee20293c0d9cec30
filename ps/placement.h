// Which server holds which elements of the flattened model.
#pragma once

#include <vector>

#include "ps/shard.h"

namespace ranklab::ps {

// Cuts [0, elements) into `servers` consecutive ranges whose sizes differ by at most one.
// Requires: servers >= 1, elements >= 0.
std::vector<KeyRange> CutEvenly(std::int64_t elements, int servers);

// The pieces of `part` that each server holds: (server, piece), empty pieces left out.
std::vector<std::pair<Rank, KeyRange>> Intersect(const std::vector<KeyRange>& ranges,
                                                 KeyRange part);

}  // namespace ranklab::ps
