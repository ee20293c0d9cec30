// The cluster's clock on this process's loop, and what the program's own instant is while the loop
// runs late.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "core/event_loop.h"
#include "core/units.h"

namespace ranklab::transport {

class ShapeClock {
 public:
  // cluster's clock = loop's clock + offset.
  ShapeClock(EventLoop& loop, Nanos offset) : loop_(loop), offset_(offset) {}

  // Timers that are still out when `owner` is gone do nothing. Called once, before the first.
  void OwnedBy(std::weak_ptr<void> owner) { owner_ = std::move(owner); }
  const std::weak_ptr<void>& owner() const { return owner_; }

  Nanos Now() const { return loop_.Now() + offset_; }

  // Now, less the lateness with which the loop runs the current callback: where a message that is
  // sent from it counts from. So a timer that fires 60 us late does not make a ring of 30 messages
  // 1.8 ms longer than it is. Beyond kForgiven it is no longer a timer's error.
  Nanos ProgramNow() const { return Now() - forgiven_; }

  static constexpr Nanos kForgiven = std::chrono::milliseconds(1);
  Nanos Forgiven(Nanos due) const { return std::clamp(Now() - due, Nanos(0), kForgiven); }

  // Runs a callback that was due at `due`.
  template <typename Callback>
  void RunDue(Nanos due, Callback&& callback) {
    const Nanos outer = std::exchange(forgiven_, Forgiven(due));
    std::forward<Callback>(callback)();
    forgiven_ = outer;
  }

  TimerId RunAt(Nanos when, Task task) {
    // A saturated instant never comes, and must not wrap on the loop's clock.
    const Nanos at = std::min(when, Nanos::max() / 2) - offset_;
    return loop_.RunAt(at, [owner = owner_, task = std::move(task)]() mutable {
      if (const std::shared_ptr<void> alive = owner.lock()) {
        task();
      }
    });
  }

  // Forgets the timer, if there is one.
  void Cancel(TimerId& timer) {
    if (timer != TimerId::kNone) {
      loop_.Cancel(std::exchange(timer, TimerId::kNone));
    }
  }

  void Post(Task task) { loop_.Post(std::move(task)); }

 private:
  EventLoop& loop_;
  Nanos offset_;
  Nanos forgiven_{};
  std::weak_ptr<void> owner_;
};

}  // namespace ranklab::transport
