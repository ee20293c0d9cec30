#include "collectives/progress.h"

#include "core/check.h"

namespace ranklab::collectives {

Progress::Progress(const RankPlan& plan)
    : plan_(plan), states_(plan.ops.size()), unfinished_(static_cast<OpIndex>(plan.ops.size())) {
  startable_.reserve(states_.size());
  landable_.reserve(states_.size());
  for (OpIndex op = 0; op < size(); ++op) {
    const RankPlan::PlannedOp& planned = plan.at(op);
    at(op).start_causes = planned.start_causes;
    at(op).landing_causes = planned.landing_causes;
    if (planned.start_causes == 0) {
      startable_.push_back(op);
    }
    if (planned.op.kind == OpKind::kRecv && planned.landing_causes == 0) {
      landable_.push_back(op);
    }
  }
}

std::optional<OpIndex> Progress::TakeStartable() {
  if (next_startable_ == startable_.size()) {
    return std::nullopt;
  }
  const OpIndex op = startable_[next_startable_++];
  // What may start follows what it overwrites or reads, so its chunks are free.
  RANKLAB_CHECK(at(op).landing_causes == 0, "op %d starts before its chunks are free", op);
  at(op).started = true;
  if (const OpIndex next = plan_.at(op).next_in_channel; next >= 0) {
    RemoveStartCause(next);
  }
  return op;
}

std::optional<OpIndex> Progress::TakeLandable() {
  return next_landable_ == landable_.size() ? std::nullopt
                                            : std::optional(landable_[next_landable_++]);
}

void Progress::Finish(OpIndex op) {
  RANKLAB_CHECK(at(op).started && !at(op).finished, "op %d", op);
  at(op).finished = true;
  --unfinished_;
  for (const OpIndex follower : plan_.Followers(plan_.at(op).starts)) {
    RemoveStartCause(follower);
  }
  for (const OpIndex follower : plan_.Followers(plan_.at(op).frees)) {
    if (--at(follower).landing_causes == 0) {
      landable_.push_back(follower);
    }
  }
}

void Progress::RemoveStartCause(OpIndex op) {
  if (--at(op).start_causes == 0) {
    startable_.push_back(op);
  }
}

}  // namespace ranklab::collectives
