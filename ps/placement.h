// Which server holds which elements of the flattened model.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/units.h"
#include "ps/key_range.h"

namespace ranklab::ps {

// Cuts [0, elements) into `servers` consecutive ranges whose sizes differ by at most one; the
// first ones are the larger.
// Requires: servers >= 1, elements >= 0.
std::vector<KeyRange> CutEvenly(std::int64_t elements, int servers);

// The pieces of `part` that each server holds: (server, piece), by server, empty pieces left out.
// Requires: ranges[server] as CutEvenly gives them.
std::vector<std::pair<Rank, KeyRange>> Intersect(const std::vector<KeyRange>& ranges,
                                                 KeyRange part);

}  // namespace ranklab::ps
