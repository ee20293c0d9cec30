// The batches of this rank, gathered ahead of the step by one loader thread: a queue with a visible
// depth. An injected slow input slows the loader, so that it starves the step the way a slow disk
// does.
#pragma once

#include <cstdint>
#include <deque>
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
    int depth = 2;  // batches gathered ahead
  };

  // Both must outlive it. The loader starts at once, with step 1.
  InputQueue(const Dataset& data, const SamplePlan& plan, const Options& options);
  ~InputQueue();

  // The batch of the next step; waits for the loader at most `timeout`.
  absl::StatusOr<RankBatch> Next(Nanos timeout);

  // From now on the loader takes this much longer for a batch.
  void SlowDown(Nanos wall);

  int depth() const;  // batches that are ready now

 private:
  void Load();
  RankBatch Gather(Step step) const;

  const Dataset& data_;
  const SamplePlan& plan_;
  const Options options_;
  mutable absl::Mutex mutex_;
  std::deque<RankBatch> ready_ ABSL_GUARDED_BY(mutex_);
  Nanos slow_down_ ABSL_GUARDED_BY(mutex_){};
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread loader_;
};

}  // namespace ranklab::worker
