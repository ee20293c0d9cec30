// A loop's answer, for a thread that is not the loop's.
#pragma once

#include <utility>

#include "core/check.h"
#include "core/event_loop.h"
#include "core/status.h"
#include "core/status_latch.h"

namespace ranklab {

// Runs `task` on the loop and waits for it. Requires: not called on the loop, which is running and
// answers within a minute; a loop that does not is stuck.
inline void RunOnLoop(EventLoop& loop, Task task) {
  StatusLatch done;
  loop.Post([&] {
    task();
    done.Set(absl::OkStatus());
  });
  const absl::Status status = done.Wait(std::chrono::minutes(1), "the loop");
  RANKLAB_CHECK(status.ok(), "%s", MessageOf(status));
}

}  // namespace ranklab
