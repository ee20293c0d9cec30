// Which samples come when: a pure function of (seed, epoch, consumed), so that a restart, a join or
// a loss neither loses nor repeats a sample.
#pragma once

#include <cstdint>
#include <vector>

#include "core/units.h"
#include "worker/train_state.h"

namespace ranklab::worker {

// Each epoch is its own seeded permutation of the data set. A global batch takes the next samples
// of it; when fewer are left than a batch, the epoch ends with a short batch (counted, reported),
// so that each sample comes exactly once an epoch.
class SamplePlan {
 public:
  SamplePlan(std::uint64_t seed, std::int64_t data_size, std::int64_t global_batch);

  struct GlobalBatch {
    SamplePosition position;               // before the batch
    std::vector<std::int64_t> samples;     // indices into the data set, in order
  };

  // The batch at `position`. Requires: 0 <= position.consumed < data_size.
  GlobalBatch At(const SamplePosition& position) const;
  SamplePosition After(const SamplePosition& position) const;
  SamplePosition Start() const { return {seed_, 0, 0}; }

  // Position of global batch number `step` (from 1), without walking: for asynchronous workers.
  SamplePosition PositionOf(Step step) const;

  // The part of a global batch of `size` samples that `rank` of `ranks` computes: [first, second).
  // Sizes differ by at most one.
  static std::pair<std::int64_t, std::int64_t> ShareOf(std::int64_t size, Rank rank, int ranks);

 private:
  std::uint64_t seed_;
  std::int64_t data_size_;
  std::int64_t global_batch_;
};

}  // namespace ranklab::worker
