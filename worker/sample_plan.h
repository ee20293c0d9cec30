// Which samples come when: a pure function of (seed, epoch, consumed), so that a restart, a join or
// a loss neither loses nor repeats a sample.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/units.h"
#include "worker/train_state.h"

namespace ranklab::worker {

// Each epoch is its own seeded permutation of the data set. A global batch takes the next samples
// of it; when fewer are left than a batch, the epoch ends with a short batch, so that each sample
// comes exactly once an epoch.
//
// For one thread at a time: the permutation of the last epoch asked for is kept.
class SamplePlan {
 public:
  // Requires: data_size >= 1, global_batch >= 1.
  SamplePlan(std::uint64_t seed, std::int64_t data_size, std::int64_t global_batch);

  struct GlobalBatch {
    SamplePosition position;            // before the batch
    std::vector<std::int64_t> samples;  // indices into the data set, in order
  };

  // The batch at `position`. Requires: of this seed, epoch >= 0, 0 <= consumed < data_size.
  // Cost: O(batch), and O(data_size) when the epoch changes.
  GlobalBatch At(const SamplePosition& position) const;
  std::int64_t SizeAt(const SamplePosition& position) const;  // of that batch
  SamplePosition After(const SamplePosition& position) const;
  SamplePosition Start() const { return {seed_, 0, 0}; }

  // Position of global batch number `step` (from 1), without walking: for asynchronous workers.
  SamplePosition PositionOf(Step step) const;

  // How many of the first `steps` batches are short, for the record.
  std::int64_t ShortBatchesIn(Step steps) const;
  std::int64_t batches_per_epoch() const {
    return (data_size_ + global_batch_ - 1) / global_batch_;
  }

  // The part of a global batch of `size` samples that `rank` of `ranks` computes: [first, second).
  // Sizes differ by at most one; the larger ones come first.
  static std::pair<std::int64_t, std::int64_t> ShareOf(std::int64_t size, Rank rank, int ranks);

 private:
  const std::vector<std::int64_t>& PermutationOf(std::int64_t epoch) const;

  std::uint64_t seed_;
  std::int64_t data_size_;
  std::int64_t global_batch_;
  mutable std::int64_t cached_epoch_ = -1;
  mutable std::vector<std::int64_t> permutation_;  // of cached_epoch_
};

}  // namespace ranklab::worker
