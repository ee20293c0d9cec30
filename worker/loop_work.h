// What the training thread has asked the loop for and not got yet.
#pragma once

#include <utility>

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include "core/event_loop.h"
#include "core/status.h"
#include "core/units.h"

namespace ranklab::worker {

// Counts operations begun on the loop; the training thread waits until all have ended. Whoever owns
// one must have waited (Drain) before it goes, because the loop's callbacks point to it.
class LoopWork {
 public:
  void Begin() {
    absl::MutexLock lock(&mutex_);
    ++open_;
  }

  void End(const absl::Status& status) {
    absl::MutexLock lock(&mutex_);
    --open_;
    if (status_.ok() && !status.ok()) {
      status_ = status;
    }
  }

  // Waits until nothing is open; false if `timeout` passed before.
  bool Wait(Nanos timeout) {
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(this, &LoopWork::NoneOpen),
                                   absl::Nanoseconds(timeout.count()));
  }

  // The first error since the last call.
  absl::Status TakeStatus() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(status_, absl::OkStatus());
  }

  // For destructors, after the transport was aborted: waits without a deadline, because the loop
  // ends every operation of an aborted transport.
  void Drain() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &LoopWork::NoneOpen));
  }

 private:
  bool NoneOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return open_ == 0; }

  absl::Mutex mutex_;
  int open_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ranklab::worker
