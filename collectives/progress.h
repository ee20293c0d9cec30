// Which ops of a plan may begin, as those before them finish. Pure: no messages, no memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/rank_plan.h"

namespace ranklab::collectives {

class Progress {
 public:
  // `plan` must outlive this.
  explicit Progress(const RankPlan& plan);

  // The next op that may start, in the order in which they became so; it counts as started from now
  // on. Each op once.
  std::optional<OpIndex> TakeStartable();

  // The next kRecv whose message may land in its chunks, whether or not it may start. Each once,
  // and before TakeStartable gives it, if this is called first.
  std::optional<OpIndex> TakeLandable();

  // Requires: the op has started, and has not finished.
  void Finish(OpIndex op);

  bool started(OpIndex op) const { return at(op).started; }
  bool finished(OpIndex op) const { return at(op).finished; }
  OpIndex size() const { return static_cast<OpIndex>(states_.size()); }
  OpIndex unfinished() const { return unfinished_; }

 private:
  struct State {
    std::int32_t start_causes = 0;  // still to come
    std::int32_t landing_causes = 0;
    bool started = false;
    bool finished = false;
  };

  State& at(OpIndex op) { return states_[static_cast<std::size_t>(op)]; }
  const State& at(OpIndex op) const { return states_[static_cast<std::size_t>(op)]; }
  void RemoveStartCause(OpIndex op);

  const RankPlan& plan_;
  std::vector<State> states_;
  std::vector<OpIndex> startable_;  // grows to all ops; taken up to next_startable_
  std::vector<OpIndex> landable_;
  std::size_t next_startable_ = 0;
  std::size_t next_landable_ = 0;
  OpIndex unfinished_;
};

}  // namespace ranklab::collectives
