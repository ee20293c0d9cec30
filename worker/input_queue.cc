#include "worker/input_queue.h"

#include <algorithm>
#include <utility>

#include "core/status.h"

namespace ranklab::worker {

InputQueue::InputQueue(const Dataset& data, const SamplePlan& plan, const Options& options)
    : data_(data), plan_(plan), options_(options), loader_([this] { Load(); }) {}

InputQueue::~InputQueue() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  loader_.join();
}

RankBatch InputQueue::Gather(Step step) const {
  const SamplePlan::GlobalBatch global = plan_.At(plan_.PositionOf(step));
  const auto size = static_cast<std::int64_t>(global.samples.size());
  const auto [first, last] = SamplePlan::ShareOf(size, options_.rank, options_.ranks);
  RankBatch batch;
  batch.step = step;
  batch.position = global.position;
  batch.global_samples = size;
  for (std::int64_t i = first; i < last; ++i) {
    const std::int64_t sample = global.samples[static_cast<std::size_t>(i)];
    batch.rows.Append(data_.train, sample, sample + 1);
  }
  return batch;
}

void InputQueue::Load() {
  for (Step step = 1;; ++step) {
    RankBatch batch = Gather(step);
    absl::MutexLock lock(&mutex_);
    // The injected slowness comes before the room in the queue, as a slow disk would.
    const auto stopping = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; };
    if (mutex_.AwaitWithTimeout(absl::Condition(&stopping),
                                absl::Nanoseconds(slow_down_.count()))) {
      return;
    }
    const auto room = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stopping_ || static_cast<int>(ready_.size()) < options_.depth;
    };
    mutex_.Await(absl::Condition(&room));
    if (stopping_) {
      return;
    }
    ready_.push_back(std::move(batch));
  }
}

absl::StatusOr<RankBatch> InputQueue::Next(Nanos timeout) {
  absl::MutexLock lock(&mutex_);
  const auto available = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !ready_.empty(); };
  if (!mutex_.AwaitWithTimeout(absl::Condition(&available), absl::Nanoseconds(timeout.count()))) {
    return DeadlineExceeded("waited %.1f s for the input loader of worker %d",
                            static_cast<double>(timeout.count()) * 1e-9, options_.rank);
  }
  RankBatch batch = std::move(ready_.front());
  ready_.pop_front();
  return batch;
}

void InputQueue::SlowDown(Nanos wall) {
  absl::MutexLock lock(&mutex_);
  slow_down_ = std::max(wall, Nanos::zero());
}

int InputQueue::depth() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(ready_.size());
}

}  // namespace ranklab::worker
