// The steps of Verify, in its order. Each relies on those before it. All errors are
// FailedPrecondition and name rank, op and chunk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

// The lists of all ranks, with one number for every op. `schedule` must outlive them.
class OpLists {
 public:
  explicit OpLists(const Schedule& schedule);

  using Id = std::int32_t;

  const std::vector<Op>& of(Rank rank) const { return lists_[static_cast<std::size_t>(rank)]; }
  Rank ranks() const { return static_cast<Rank>(lists_.size()); }
  Id size() const { return first_.back(); }
  Id IdOf(Rank rank, OpIndex index) const { return first_[static_cast<std::size_t>(rank)] + index; }
  Rank RankOf(Id id) const;
  OpIndex IndexOf(Id id) const { return id - first_[static_cast<std::size_t>(RankOf(id))]; }
  const Op& at(Id id) const { return of(RankOf(id))[static_cast<std::size_t>(IndexOf(id))]; }

  // As NameOfOp; behind it where the op came from, if the schedule says so.
  std::string NameOf(Id id) const;

 private:
  const Schedule& schedule_;
  std::vector<std::vector<Op>> lists_;
  std::vector<Id> first_;  // of each rank, and the end
};

// Chunks, peers, channels and dependencies exist, and an op's chunks lie in one buffer.
absl::Status CheckOps(const Schedule& schedule, const OpLists& lists);

// For each op the other end of its message; -1 for local ops.
using Pairing = std::vector<OpLists::Id>;
absl::StatusOr<Pairing> PairMessages(const OpLists& lists);

// No two ops of a rank that touch the same chunk, one of them writing, may overlap. Orders that
// only hold because of what other ranks do are not counted.
absl::Status CheckOverlaps(const Schedule& schedule, const OpLists& lists);

// Runs all ranks on symbols: nothing waits for ever, no contribution is lost, doubled or misplaced.
absl::Status RunOnSymbols(const Schedule& schedule, const OpLists& lists, const Pairing& pairing);

// Both ends of a message, and source and target of a local op, have chunks of the same sizes also
// where the buffer cannot be cut evenly, unless the schedule refuses such buffers.
absl::Status CheckSizes(const Schedule& schedule, const OpLists& lists, const Pairing& pairing);

}  // namespace ranklab::collectives
