// One thread waits for what another one finishes.
#pragma once

#include <string_view>
#include <utility>

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include "core/status.h"
#include "core/units.h"

namespace ranklab {

// Open until Set; the first Set counts. Safe from any thread.
class StatusLatch {
 public:
  void Set(absl::Status status) {
    absl::MutexLock lock(&mutex_);
    if (!set_) {
      set_ = true;
      status_ = std::move(status);
    }
  }

  bool is_set() const {
    absl::MutexLock lock(&mutex_);
    return set_;
  }

  // What was Set, or DeadlineExceeded naming `what` after `timeout`.
  absl::Status Wait(Nanos timeout, std::string_view what) const {
    absl::MutexLock lock(&mutex_);
    if (!mutex_.AwaitWithTimeout(absl::Condition(&set_), absl::Nanoseconds(timeout.count()))) {
      return DeadlineExceeded("waited %.1f s for %s", static_cast<double>(timeout.count()) * 1e-9,
                              what);
    }
    return status_;
  }

  // Sleeps for `duration`, or until Set, whichever comes first; then true.
  bool SleepUnlessSet(Nanos duration) const {
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&set_), absl::Nanoseconds(duration.count()));
  }

 private:
  mutable absl::Mutex mutex_;
  bool set_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ranklab
