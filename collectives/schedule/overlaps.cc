#include <map>

#include "collectives/schedule/conflicts.h"
#include "collectives/schedule/print.h"
#include "collectives/schedule/proof.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

// The ops that have surely finished before each op of one list starts, as rows of bits.
class FinishedBefore {
 public:
  explicit FinishedBefore(const std::vector<Op>& ops)
      : words_((ops.size() + 63) / 64), bits_(ops.size() * words_) {
    std::map<std::int32_t, OpIndex> last_in_channel;
    for (OpIndex i = 0; i < static_cast<OpIndex>(ops.size()); ++i) {
      const Op& op = ops[static_cast<std::size_t>(i)];
      for (const OpIndex done : op.after) {
        Inherit(i, done);
        Row(i)[done / 64] |= std::uint64_t{1} << (done % 64);
      }
      const auto [last, first_of_channel] = last_in_channel.try_emplace(op.channel, i);
      if (!first_of_channel) {
        Inherit(i, last->second);  // it has started, so what it waited for has finished
        last->second = i;
      }
    }
  }

  bool Contains(OpIndex op, OpIndex earlier) const {
    return (bits_[static_cast<std::size_t>(op) * words_ + static_cast<std::size_t>(earlier) / 64] >>
            (earlier % 64)) &
           1;
  }

 private:
  std::uint64_t* Row(OpIndex op) { return &bits_[static_cast<std::size_t>(op) * words_]; }
  void Inherit(OpIndex op, OpIndex from) {
    std::uint64_t* to = Row(op);
    const std::uint64_t* row = Row(from);
    for (std::size_t w = 0; w <= static_cast<std::size_t>(from) / 64; ++w) {
      to[w] |= row[w];
    }
  }

  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

}  // namespace

absl::Status CheckOverlaps(const Schedule& schedule, const OpLists& lists) {
  for (Rank rank = 0; rank < lists.ranks(); ++rank) {
    const std::vector<Op>& ops = lists.of(rank);
    const FinishedBefore finished(ops);
    ConflictScan scan(schedule.chunks());
    for (OpIndex i = 0; i < static_cast<OpIndex>(ops.size()); ++i) {
      for (const auto& [earlier, chunk] : scan.Next(i, ops[static_cast<std::size_t>(i)])) {
        if (!finished.Contains(i, earlier)) {
          return FailedPrecondition(
              "%s may overlap with op %d (%s): both use chunk %d and nothing orders them",
              NameOfOp(rank, i, ops[static_cast<std::size_t>(i)]), earlier,
              PrintOp(ops[static_cast<std::size_t>(earlier)]), chunk);
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace ranklab::collectives
