#include "ps/consistency.h"

#include <algorithm>

#include "core/check.h"

namespace ranklab::ps {

StalenessGate::StalenessGate(int worker_count, StalenessBound bound)
    : bound_(bound),
      clocks_(static_cast<std::size_t>(worker_count), 0),
      presences_(static_cast<std::size_t>(worker_count), Presence::kLive) {
  RANKLAB_CHECK(worker_count >= 1, "%d workers", worker_count);
  RANKLAB_CHECK(bound.steps >= 0, "a bound of %d steps", bound.steps);
}

void StalenessGate::Finish(Rank worker, Step step) {
  RANKLAB_CHECK(!removed(worker), "worker %d was removed", worker);
  RANKLAB_CHECK(step == clock(worker) + 1, "worker %d finishes step %d after step %d", worker, step,
                clock(worker));
  clocks_[static_cast<std::size_t>(worker)] = step;
}

bool StalenessGate::MayPull(Rank worker, Step step) const {
  if (removed(worker) || clock(worker) < step - 1) {
    return false;
  }
  // Compared by difference: `step - 1 - bound` would overflow without a bound.
  return bound_.steps == StalenessBound::kUnbounded || step - 1 - slowest_step() <= bound_.steps;
}

void StalenessGate::Leave(Rank worker) {
  if (live(worker)) {
    presences_[static_cast<std::size_t>(worker)] = Presence::kLeft;
  }
}

void StalenessGate::Remove(Rank worker) {
  presences_.at(static_cast<std::size_t>(worker)) = Presence::kRemoved;
}

Step StalenessGate::slowest_step() const {
  Step slowest_live = std::numeric_limits<Step>::max();
  for (std::size_t worker = 0; worker < clocks_.size(); ++worker) {
    if (presences_[worker] == Presence::kLive) {
      slowest_live = std::min(slowest_live, clocks_[worker]);
    }
  }
  return slowest_live != std::numeric_limits<Step>::max()
             ? slowest_live
             : *std::min_element(clocks_.begin(), clocks_.end());
}

}  // namespace ranklab::ps
