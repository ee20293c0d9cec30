#include "collectives/schedule/conflicts.h"
#include "collectives/schedule/finished_before.h"
#include "collectives/schedule/print.h"
#include "collectives/schedule/proof.h"
#include "core/status.h"

namespace ranklab::collectives {
absl::Status CheckOverlaps(const Schedule& schedule, const OpLists& lists) {
  for (Rank rank = 0; rank < lists.ranks(); ++rank) {
    const std::vector<Op>& ops = lists.of(rank);
    FinishedBefore finished;
    ConflictScan scan(schedule.chunks());
    for (OpIndex i = 0; i < static_cast<OpIndex>(ops.size()); ++i) {
      finished.Append(ops[static_cast<std::size_t>(i)].channel);
      for (const OpIndex earlier : ops[static_cast<std::size_t>(i)].after) {
        finished.WaitFor(earlier);
      }
      for (const auto& [earlier, chunk] : scan.Next(i, ops[static_cast<std::size_t>(i)])) {
        if (!finished.Contains(i, earlier)) {
          return FailedPrecondition(
              "%s may overlap with op %d (%s): both use chunk %d and nothing orders them",
              lists.NameOf(lists.IdOf(rank, i)), earlier,
              PrintOp(ops[static_cast<std::size_t>(earlier)]), chunk);
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace ranklab::collectives
