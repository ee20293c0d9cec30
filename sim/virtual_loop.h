// Virtual time: an EventLoop whose clock jumps to the next event. Deterministic: ties run in call
// order. A value: as many as one likes, one a thread.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "core/event_loop.h"

namespace ranklab::sim {

class VirtualLoop final : public EventLoop {
 public:
  Nanos Now() const override { return now_; }
  void Post(Task task) override { Schedule(now_, std::move(task)); }
  TimerId RunAt(Nanos when, Task task) override;
  void Cancel(TimerId timer) override;

  // Runs the next event. False when there is none.
  bool RunOne();
  // Runs until there is none left, or until `limit` events have run (a livelock shows as false).
  bool Run(std::int64_t limit = 1'000'000'000);
  // Runs all events up to and including `until`; the clock ends there.
  void RunUntil(Nanos until);

  std::int64_t events_run() const { return events_run_; }

 private:
  using Key = std::pair<Nanos, std::uint64_t>;  // when, order of the call

  TimerId Schedule(Nanos when, Task task);

  Nanos now_{};
  std::uint64_t next_order_ = 1;
  std::int64_t events_run_ = 0;
  std::map<Key, Task> queue_;
  std::map<std::uint64_t, Nanos> timers_;  // order -> when, of those still queued
};

}  // namespace ranklab::sim
