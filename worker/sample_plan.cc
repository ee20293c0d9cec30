#include "worker/sample_plan.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "core/check.h"
#include "core/random.h"
#include "worker/streams.h"

namespace ranklab::worker {

SamplePlan::SamplePlan(std::uint64_t seed, std::int64_t data_size, std::int64_t global_batch)
    : seed_(seed), data_size_(data_size), global_batch_(global_batch) {
  RANKLAB_CHECK(data_size >= 1, "data_size %d", data_size);
  RANKLAB_CHECK(global_batch >= 1, "global_batch %d", global_batch);
}

SamplePlan::GlobalBatch SamplePlan::At(const SamplePosition& position) const {
  const std::vector<std::int64_t>& permutation = PermutationOf(position.epoch);
  const auto first = permutation.begin() + position.consumed;
  return {.position = position, .samples = {first, first + SizeAt(position)}};
}

SamplePosition SamplePlan::After(const SamplePosition& position) const {
  SamplePosition next = position;
  next.consumed += SizeAt(position);
  if (next.consumed == data_size_) {
    next.consumed = 0;
    ++next.epoch;
  }
  return next;
}

SamplePosition SamplePlan::PositionOf(Step step) const {
  RANKLAB_CHECK(step >= 1, "step %d", step);
  return {.seed = seed_,
          .epoch = (step - 1) / batches_per_epoch(),
          .consumed = (step - 1) % batches_per_epoch() * global_batch_};
}

std::int64_t SamplePlan::ShortBatchesIn(Step steps) const {
  RANKLAB_CHECK(steps >= 0, "steps %d", steps);
  return data_size_ % global_batch_ == 0 ? 0 : steps / batches_per_epoch();
}

std::pair<std::int64_t, std::int64_t> SamplePlan::ShareOf(std::int64_t size, Rank rank, int ranks) {
  RANKLAB_CHECK(0 <= rank && rank < ranks, "rank %d of %d", rank, ranks);
  RANKLAB_CHECK(size >= 0, "size %d", size);
  const std::int64_t share = size / ranks;
  const std::int64_t larger = size % ranks;
  const std::int64_t first = rank * share + std::min<std::int64_t>(rank, larger);
  return {first, first + share + (rank < larger ? 1 : 0)};
}

std::int64_t SamplePlan::SizeAt(const SamplePosition& position) const {
  RANKLAB_CHECK(position.seed == seed_, "a position of another seed");
  RANKLAB_CHECK(position.epoch >= 0 && 0 <= position.consumed && position.consumed < data_size_,
                "epoch %d, %d of %d samples", position.epoch, position.consumed, data_size_);
  return std::min(global_batch_, data_size_ - position.consumed);
}

const std::vector<std::int64_t>& SamplePlan::PermutationOf(std::int64_t epoch) const {
  if (epoch != cached_epoch_) {
    permutation_.resize(static_cast<std::size_t>(data_size_));
    std::iota(permutation_.begin(), permutation_.end(), 0);
    StreamOf(seed_, Stream::kSampleOrder)
        .Split(static_cast<std::uint64_t>(epoch))
        .Shuffle(std::span(permutation_));
    cached_epoch_ = epoch;
  }
  return permutation_;
}

}  // namespace ranklab::worker
