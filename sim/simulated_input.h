// What worker/input_queue does, in virtual time: batches gathered ahead of the step, a loader that
// an injection slows. Gathering itself takes no time.
#pragma once

#include <optional>

#include "core/event_loop.h"
#include "core/units.h"

namespace ranklab::sim {

// On the loop; must outlive its tasks there.
class SimulatedInput {
 public:
  // `depth`: batches gathered ahead, at least 1. The loader starts at once.
  SimulatedInput(EventLoop& loop, int depth);

  // From its next batch on the loader takes this much longer for one.
  void SlowDown(Nanos extra) { extra_ = extra; }

  // Runs `taken` once the next batch is there; within this call if it is. Requires: the one before
  // was taken.
  void Take(Task taken);

 private:
  void Gather();
  void Gathered();
  void Put();

  EventLoop& loop_;
  const int depth_;
  Nanos extra_{};
  int ready_ = 0;
  bool holds_one_ = false;  // the loader has a batch that the queue has no room for
  std::optional<Task> waiting_;
};

}  // namespace ranklab::sim
