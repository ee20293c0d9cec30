#include "sim/rank_programs.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "core/status.h"

namespace ranklab::sim {

using collectives::IsReceive;
using collectives::Op;
using collectives::OpKind;

namespace {

// One end of a message, sortable: the k-th of a stream stands k-th among its equals.
struct End {
  Rank from = 0;
  Rank to = 0;
  std::int32_t channel = 0;
  std::size_t op = 0;

  auto stream() const { return std::tuple(from, to, channel); }
  friend bool operator<(const End& a, const End& b) {
    return std::tuple(a.from, a.to, a.channel, a.op) < std::tuple(b.from, b.to, b.channel, b.op);
  }
};

}  // namespace

class ProgramBuilder {
 public:
  absl::StatusOr<RankPrograms> Build(const collectives::Schedule& schedule) && {
    programs_.digits_ = schedule.digits;
    const bool shared = !schedule.digits.empty();
    for (Rank rank = 0; rank < (shared ? 1 : schedule.group_size); ++rank) {
      if (!shared) {
        programs_.first_of_.push_back(static_cast<std::int32_t>(programs_.ops_.size()));
      }
      RETURN_IF_ERROR(AddRank(rank, schedule.ops_of(rank)));
    }
    if (!shared) {
      programs_.first_of_.push_back(static_cast<std::int32_t>(programs_.ops_.size()));
    }
    programs_.ops_.push_back(
        {.followers_begin = static_cast<std::int32_t>(programs_.followers_.size())});
    RETURN_IF_ERROR(Pair());
    return std::move(programs_);
  }

 private:
  absl::Status AddRank(Rank rank, const std::vector<Op>& ops) {
    const std::size_t first = programs_.ops_.size();
    constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<OpIndex>::max());
    if (first + ops.size() >= kMost || programs_.followers_.size() + ops.size() >= kMost) {
      return ResourceExhausted("the lists of rank 0 to %d have more than 2^31 ops", rank);
    }
    last_in_channel_.clear();
    for (OpIndex i = 0; i < static_cast<OpIndex>(ops.size()); ++i) {
      const Op& op = ops[static_cast<std::size_t>(i)];
      programs_.ops_.push_back({.kind = op.kind,
                                .channel = op.channel,
                                .chunks = op.count,
                                .peer = op.peer,
                                .causes = static_cast<std::int32_t>(op.after.size())});
      FollowInChannel(first, i, op.channel);
      AddEnd(rank, op, first + static_cast<std::size_t>(i));
    }
    ListFollowers(first, ops);
    return absl::OkStatus();
  }

  void FollowInChannel(std::size_t first, OpIndex op, std::int32_t channel) {
    if (static_cast<std::size_t>(channel) >= last_in_channel_.size()) {
      last_in_channel_.resize(static_cast<std::size_t>(channel) + 1, -1);
    }
    const OpIndex last = std::exchange(last_in_channel_[static_cast<std::size_t>(channel)], op);
    if (last >= 0) {
      programs_.ops_[first + static_cast<std::size_t>(last)].next_in_channel = op;
      ++programs_.ops_[first + static_cast<std::size_t>(op)].causes;
    }
  }

  // In a shared list the sender stands for rank 0, and so does the receiver: what it receives comes
  // from where it would have to be moved back to.
  void AddEnd(Rank rank, const Op& op, std::size_t index) {
    if (op.kind == OpKind::kSend) {
      sends_.push_back({rank, op.peer, op.channel, index});
    } else if (IsReceive(op.kind)) {
      const End end =
          programs_.shared()
              ? End{rank, collectives::Opposite(programs_.digits_, op.peer), op.channel, index}
              : End{op.peer, rank, op.channel, index};
      receives_.push_back(end);
    }
  }

  // Counting sort of the list's `after` by where they come from.
  void ListFollowers(std::size_t first, const std::vector<Op>& ops) {
    next_.assign(ops.size() + 1, 0);
    for (const Op& op : ops) {
      for (const OpIndex earlier : op.after) {
        ++next_[static_cast<std::size_t>(earlier) + 1];
      }
    }
    const std::size_t begin = programs_.followers_.size();
    for (std::size_t i = 0; i < ops.size(); ++i) {
      programs_.ops_[first + i].followers_begin = static_cast<std::int32_t>(begin) + next_[i];
      next_[i + 1] += next_[i];
    }
    programs_.followers_.resize(begin + static_cast<std::size_t>(next_.back()));
    for (std::size_t i = 0; i < ops.size(); ++i) {
      for (const OpIndex earlier : ops[i].after) {
        const std::int32_t slot = next_[static_cast<std::size_t>(earlier)]++;
        programs_.followers_[begin + static_cast<std::size_t>(slot)] = static_cast<OpIndex>(i);
      }
    }
  }

  absl::Status Pair() {
    std::sort(sends_.begin(), sends_.end());
    std::sort(receives_.begin(), receives_.end());
    for (std::size_t i = 0; i < std::max(sends_.size(), receives_.size()); ++i) {
      if (i >= sends_.size() || i >= receives_.size() ||
          sends_[i].stream() != receives_[i].stream()) {
        const End& odd = i < sends_.size() ? sends_[i] : receives_[i];
        return FailedPrecondition(
            "from rank %d to rank %d in channel %d, sends and receives do not pair up", odd.from,
            odd.to, odd.channel);
      }
      const bool shared = programs_.shared();
      const Rank from = shared ? 0 : sends_[i].from;
      const Rank to = shared ? 0 : sends_[i].to;
      programs_.ops_[sends_[i].op].other =
          static_cast<OpIndex>(receives_[i].op) - programs_.FirstOf(to);
      programs_.ops_[receives_[i].op].other =
          static_cast<OpIndex>(sends_[i].op) - programs_.FirstOf(from);
    }
    return absl::OkStatus();
  }

  RankPrograms programs_;
  std::vector<End> sends_;
  std::vector<End> receives_;
  std::vector<OpIndex> last_in_channel_;  // of the rank being added
  std::vector<std::int32_t> next_;
};

absl::StatusOr<RankPrograms> RankPrograms::Of(const collectives::Schedule& schedule) {
  return ProgramBuilder().Build(schedule);
}

}  // namespace ranklab::sim
