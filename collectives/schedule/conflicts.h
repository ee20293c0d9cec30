// Which ops of one rank must not overlap: two that touch the same chunk, one of them writing.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

// Reads a rank's list in order.
class ConflictScan {
 public:
  explicit ConflictScan(std::int32_t chunks) : uses_(static_cast<std::size_t>(chunks)) {}

  struct Conflict {
    OpIndex earlier = 0;
    std::int32_t chunk = 0;
  };

  // The earlier ops that `op` must not overlap with: the last writer of each chunk it touches, and
  // for each chunk it writes also the readers since. That orders `op` after all conflicting ones,
  // given that each of these is ordered after its own conflicts. Valid until the next call.
  // Requires: the op's chunks exist, indices ascend.
  const std::vector<Conflict>& Next(OpIndex index, const Op& op);

 private:
  struct Use {
    OpIndex writer = -1;
    std::vector<OpIndex> readers;  // since then
  };

  std::vector<Use> uses_;
  std::vector<Conflict> found_;
};

}  // namespace ranklab::collectives
