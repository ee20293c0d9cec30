// The lists of all ranks of a schedule in flat arrays: who follows whom, and which send meets which
// receive. Where the schedule promises a symmetry (Schedule::digits) there is one list for all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <absl/status/statusor.h>

#include "collectives/schedule/schedule.h"
#include "collectives/schedule/symmetry.h"

namespace ranklab::sim {

using collectives::OpIndex;

struct ProgramOp {
  collectives::OpKind kind = collectives::OpKind::kSend;
  std::int32_t channel = 0;
  std::int32_t chunks = 0;
  Rank peer = -1;                // in a shared list: by how much it is translated
  OpIndex other = -1;            // the other end of the message, in the peer's list
  OpIndex next_in_channel = -1;  // may start once this one has
  std::int32_t causes = 0;       // starts and finishes it waits for
  std::int32_t followers_begin = 0;
};

class RankPrograms {
 public:
  // Errors: FailedPrecondition, a message without its other end; ResourceExhausted, more ops than
  // are held (2^31 - 1).
  static absl::StatusOr<RankPrograms> Of(const collectives::Schedule& schedule);

  bool shared() const { return first_of_.empty(); }
  std::span<const int> digits() const { return digits_; }  // if shared

  // Ops, one more behind the last; those of rank r from FirstOf(r) on.
  const std::vector<ProgramOp>& ops() const { return ops_; }
  std::int32_t FirstOf(Rank rank) const {
    return shared() ? 0 : first_of_[static_cast<std::size_t>(rank)];
  }
  std::int32_t CountOf(Rank rank) const {
    return shared() ? static_cast<std::int32_t>(ops_.size()) - 1
                    : first_of_[static_cast<std::size_t>(rank) + 1] - FirstOf(rank);
  }

  Rank PeerOf(Rank rank, const ProgramOp& op) const {
    return shared() ? collectives::Translate(digits_, rank, op.peer) : op.peer;
  }
  // Those that wait for the finish of ops()[index]; within the rank's list.
  std::span<const OpIndex> FollowersOf(std::size_t index) const {
    const auto begin = static_cast<std::size_t>(ops_[index].followers_begin);
    const auto end = static_cast<std::size_t>(ops_[index + 1].followers_begin);
    return std::span(followers_).subspan(begin, end - begin);
  }

 private:
  friend class ProgramBuilder;

  std::vector<ProgramOp> ops_;
  std::vector<OpIndex> followers_;
  std::vector<std::int32_t> first_of_;  // [rank], one more at the end; empty: one list for all
  std::vector<int> digits_;
};

}  // namespace ranklab::sim
