#include "worker/input_queue.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/status.h"

namespace ranklab::worker {

InputQueue::InputQueue(const Dataset& data, const SamplePlan& plan, const Options& options)
    : data_(data), options_(options), plan_(plan) {
  RANKLAB_CHECK(options.depth >= 1 && options.loaders >= 1);
  for (int i = 0; i < options.loaders; ++i) {
    loaders_.emplace_back([this] { Load(); });
  }
}

InputQueue::~InputQueue() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& loader : loaders_) {
    loader.join();
  }
}

RankBatch InputQueue::GatherNext() {
  Step step = 0;
  SamplePlan::GlobalBatch global;
  {
    absl::MutexLock lock(&plan_mutex_);
    step = ++begun_;
    global = plan_.At(plan_.PositionOf(step));
  }
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
  for (;;) {
    RankBatch batch = GatherNext();
    absl::MutexLock lock(&mutex_);
    // The injected slowness comes before the room in the queue, as a slow disk would.
    const auto stopping = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; };
    mutex_.AwaitWithTimeout(absl::Condition(&stopping), absl::Nanoseconds(slow_down_.count()));
    // The next step to be taken always finds room, so that loaders ahead of it do not block it.
    const auto room = [this, &batch]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stopping_ || batch.step <= taken_ + options_.depth;
    };
    mutex_.Await(absl::Condition(&room));
    if (stopping_) {
      return;
    }
    const Step step = batch.step;
    ready_.emplace(step, std::move(batch));
  }
}

absl::StatusOr<RankBatch> InputQueue::Next(Nanos timeout) {
  absl::MutexLock lock(&mutex_);
  const auto available = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ready_.contains(taken_ + 1);
  };
  if (!mutex_.AwaitWithTimeout(absl::Condition(&available), absl::Nanoseconds(timeout.count()))) {
    return DeadlineExceeded("waited %.1f s for the input loader of worker %d",
                            static_cast<double>(timeout.count()) * 1e-9, options_.rank);
  }
  return std::move(ready_.extract(++taken_).mapped());
}

void InputQueue::SlowDown(Nanos wall) {
  absl::MutexLock lock(&mutex_);
  slow_down_ = std::max(wall, Nanos::zero());
}

int InputQueue::depth() const {
  absl::MutexLock lock(&mutex_);
  int steps = 0;
  while (ready_.contains(taken_ + 1 + steps)) {
    ++steps;
  }
  return steps;
}

}  // namespace ranklab::worker
