#include "collectives/schedule/conflicts.h"

namespace ranklab::collectives {

const std::vector<ConflictScan::Conflict>& ConflictScan::Next(OpIndex index, const Op& op) {
  found_.clear();
  ForEachAccess(op, [&](std::int32_t chunk, bool writes) {
    Use& use = uses_[static_cast<std::size_t>(chunk)];
    if (use.writer >= 0 && use.writer != index) {
      found_.push_back({use.writer, chunk});
    }
    if (!writes) {
      use.readers.push_back(index);
      return;
    }
    for (const OpIndex reader : use.readers) {
      if (reader != index) {
        found_.push_back({reader, chunk});
      }
    }
    use = {.writer = index, .readers = {}};
  });
  return found_;
}

}  // namespace ranklab::collectives
