// Who plays in sim/schedule_player: one actor a class of ranks, with its representative's list, and
// how far each op of it has come.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/disturbances.h"
#include "sim/rank_classes.h"
#include "sim/rank_programs.h"

namespace ranklab::sim {

using Actor = std::int32_t;

struct OpOf {
  Actor actor = 0;
  OpIndex op = 0;
  friend auto operator<=>(const OpOf&, const OpOf&) = default;
};

struct ActorState {
  Rank rank = 0;  // its representative
  double ends = 0;
  double late = 0;
  double port_factor = 1;
  std::size_t first_op = 0;  // of programs.ops()
  std::size_t first_state = 0;
};

struct OpState {
  std::uint32_t causes : 30 = 0;  // starts and finishes it still waits for
  std::uint32_t started : 1 = 0;
  std::uint32_t arrived : 1 = 0;  // a receive's message
  OpIndex next_in_port = -1;      // a send's
};

class Actors {
 public:
  // Both must outlive it. Requires: disturbances of ranks of the group.
  Actors(const RankPrograms& programs, const RankClasses& classes,
         const Disturbances& disturbances);

  Actor count() const { return static_cast<Actor>(actors_.size()); }
  std::size_t ops() const { return states_.size(); }
  std::int32_t members(Actor actor) const {
    return classes_.members[static_cast<std::size_t>(actor)];
  }

  ActorState& at(Actor actor) { return actors_[static_cast<std::size_t>(actor)]; }
  OpState& at(OpOf id) {
    return states_[at(id.actor).first_state + static_cast<std::size_t>(id.op) * stride_];
  }
  std::int32_t CountOf(Actor actor) { return programs_.CountOf(at(actor).rank); }
  const ProgramOp& NodeOf(OpOf id) { return programs_.ops()[IndexOf(id)]; }
  std::span<const OpIndex> FollowersOf(OpOf id) { return programs_.FollowersOf(IndexOf(id)); }

  Actor ActorOf(Rank rank) const { return classes_.class_of[static_cast<std::size_t>(rank)]; }
  Rank PeerOf(Actor actor, const ProgramOp& op) { return programs_.PeerOf(at(actor).rank, op); }
  OpOf OtherEnd(Actor actor, const ProgramOp& op) { return {ActorOf(PeerOf(actor, op)), op.other}; }

 private:
  std::size_t IndexOf(OpOf id) { return at(id.actor).first_op + static_cast<std::size_t>(id.op); }

  const RankPrograms& programs_;
  const RankClasses& classes_;
  std::vector<ActorState> actors_;
  // Actor by actor; of a shared list op by op, as actors that do the same come by.
  std::vector<OpState> states_;
  const std::size_t stride_;  // from an op's state to that of the next one of its actor
};

}  // namespace ranklab::sim
