#include "sim/virtual_loop.h"

#include <algorithm>

namespace ranklab::sim {

TimerId VirtualLoop::RunAt(Nanos when, Task task) { return Schedule(when, std::move(task)); }

TimerId VirtualLoop::Schedule(Nanos when, Task task) {
  const std::uint64_t order = next_order_++;
  const Nanos due = std::max(when, now_);
  queue_.emplace(Key{due, order}, std::move(task));
  timers_.emplace(order, due);
  return static_cast<TimerId>(order);
}

void VirtualLoop::Cancel(TimerId timer) {
  const auto found = timers_.find(static_cast<std::uint64_t>(timer));
  if (found == timers_.end()) {
    return;
  }
  queue_.erase(Key{found->second, found->first});
  timers_.erase(found);
}

bool VirtualLoop::RunOne() {
  if (queue_.empty()) {
    return false;
  }
  auto first = queue_.begin();
  now_ = first->first.first;
  timers_.erase(first->first.second);
  Task task = std::move(first->second);
  queue_.erase(first);
  ++events_run_;
  task();
  return true;
}

bool VirtualLoop::Run(std::int64_t limit) {
  for (std::int64_t i = 0; i < limit; ++i) {
    if (!RunOne()) {
      return true;
    }
  }
  return queue_.empty();
}

void VirtualLoop::RunUntil(Nanos until) {
  while (!queue_.empty() && queue_.begin()->first.first <= until) {
    RunOne();
  }
  now_ = std::max(now_, until);
}

}  // namespace ranklab::sim
