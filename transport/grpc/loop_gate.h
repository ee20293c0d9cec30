// The way from gRPC's threads onto the loop. A call that was cancelled still ends on one of them,
// some time later: with the gate shut, such a late arrival touches neither loop nor port.
#pragma once

#include <utility>

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include "core/event_loop.h"

namespace ranklab::transport {

class LoopGate {
 public:
  explicit LoopGate(EventLoop& loop) : loop_(&loop) {}

  // From any thread. False once shut: the task is dropped.
  bool Post(Task task) {
    absl::MutexLock lock(&mutex_);
    if (loop_ == nullptr) {
      return false;
    }
    loop_->Post(std::move(task));
    return true;
  }

  // Afterwards the loop may go. From any thread.
  void Shut() {
    absl::MutexLock lock(&mutex_);
    loop_ = nullptr;
  }

 private:
  absl::Mutex mutex_;
  EventLoop* loop_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ranklab::transport
