// The batches of this rank, gathered ahead of the step by loader threads: a queue with a visible
// depth. An injected slow input slows every loader, so that it starves the step the way a slow disk
// does; more loaders hide it the way more readers do.
#pragma once

#include <cstdint>
#include <map>
#include <thread>
#include <vector>

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>

#include "core/units.h"
#include "worker/dataset.h"
#include "worker/sample_plan.h"

namespace ranklab::worker {

// This rank's samples of one global batch, in host memory.
struct RankBatch {
  Step step = 0;
  SamplePosition position;
  std::int64_t global_samples = 0;
  Split rows;
  std::int64_t samples() const { return rows.samples(); }
};

class InputQueue {
 public:
  struct Options {
    Rank rank = 0;
    int ranks = 1;
    int depth = 2;    // batches that wait, at most
    int loaders = 1;  // threads, each at a batch of its own
  };

  // Both must outlive it, and the plan is this queue's alone. The loaders start at once, with
  // step 1.
  InputQueue(const Dataset& data, const SamplePlan& plan, const Options& options);
  ~InputQueue();

  // The batch of the next step, whichever loader was first; waits for it at most `timeout`.
  absl::StatusOr<RankBatch> Next(Nanos timeout);

  // From now on a loader takes this much longer for a batch.
  void SlowDown(Nanos wall);

  int depth() const;  // steps that could be taken now without waiting

 private:
  void Load();
  RankBatch GatherNext();

  const Dataset& data_;
  const Options options_;
  absl::Mutex plan_mutex_;  // never held together with the other
  const SamplePlan& plan_ ABSL_GUARDED_BY(plan_mutex_);
  Step begun_ ABSL_GUARDED_BY(plan_mutex_) = 0;  // the last one that a loader is at
  mutable absl::Mutex mutex_;
  std::map<Step, RankBatch> ready_ ABSL_GUARDED_BY(mutex_);
  Step taken_ ABSL_GUARDED_BY(mutex_) = 0;
  Nanos slow_down_ ABSL_GUARDED_BY(mutex_){};
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> loaders_;
};

}  // namespace ranklab::worker
