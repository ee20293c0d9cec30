// For each op of one list, the ops that have surely finished before it starts: those in `after`,
// and what they and the op before in the channel waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

// Grows with the list. Bits: O(ops^2 / 2) in all, O(ops / 64) words an op and cause.
class FinishedBefore {
 public:
  // The next op of the list, in `channel`.
  void Append(std::int32_t channel);

  // The last op waits for the finish of `earlier`. Requires: earlier < the last op.
  void WaitFor(OpIndex earlier);

  // Requires: earlier < op <= the last op.
  bool Contains(OpIndex op, OpIndex earlier) const {
    return (bits_[rows_[static_cast<std::size_t>(op)] + static_cast<std::size_t>(earlier) / 64] >>
            (earlier % 64)) &
           1;
  }

 private:
  void Inherit(OpIndex from);

  std::vector<std::size_t> rows_;  // where each op's bits begin
  std::vector<std::uint64_t> bits_;
  std::map<std::int32_t, OpIndex> last_in_channel_;
};

}  // namespace ranklab::collectives
