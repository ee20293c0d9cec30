// What worker/input_queue does, in virtual time: batches gathered ahead of the step, loaders that
// an injection slows. Gathering itself takes no time.
#pragma once

#include <optional>
#include <set>

#include "core/event_loop.h"
#include "core/units.h"

namespace ranklab::sim {

struct InputOptions {
  int depth = 2;    // batches gathered ahead, at least 1
  int loaders = 1;  // at least 1
};

// On the loop; must outlive its tasks there.
class SimulatedInput {
 public:
  // The loaders start at once.
  SimulatedInput(EventLoop& loop, const InputOptions& options);

  // From its next batch on a loader takes this much longer for one.
  void SlowDown(Nanos extra) { extra_ = extra; }

  // Runs `taken` once the next batch is there; within this call if it is. Requires: the one before
  // was taken.
  void Take(Task taken);

  int depth() const { return static_cast<int>(ready_.size()); }  // batches that wait

 private:
  void Gather();
  void Gathered(Step step);
  void PutWhatFits();
  void Serve();

  EventLoop& loop_;
  const InputOptions options_;
  Nanos extra_{};
  Step begun_ = 0;  // the last one that a loader is at
  Step taken_ = 0;
  std::set<Step> held_;  // by a loader, for want of room in the queue
  std::set<Step> ready_;
  std::optional<Task> waiting_;
};

}  // namespace ranklab::sim
