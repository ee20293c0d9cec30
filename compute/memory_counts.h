// The bytes of one device by kind, now and at peak, and the cap on all of them.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>

#include "compute/tensor.h"

namespace ranklab::compute {

std::string_view NameOf(MemoryKind kind);

// From any thread.
class MemoryCounts {
 public:
  // `device` names it in messages. `cap` of all kinds together; 0: none.
  MemoryCounts(std::string device, Bytes cap);
  ~MemoryCounts();  // Requires: everything was returned.
  MemoryCounts(const MemoryCounts&) = delete;
  MemoryCounts& operator=(const MemoryCounts&) = delete;

  // Errors: ResourceExhausted, with kind, asked, in use by kind, cap.
  absl::Status Take(Bytes size, MemoryKind kind);
  void Return(Bytes size, MemoryKind kind);

  // Of memory within the cap that could not be had after all: `why` is "the machine refused".
  absl::Status Refusal(Bytes size, MemoryKind kind, std::string_view why) const;

  std::vector<MemoryCount> counts() const;  // every kind, in the order of MemoryKind

 private:
  MemoryCount& at(MemoryKind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return of_kind_.at(static_cast<std::size_t>(kind));
  }
  std::string InUse() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string device_;
  const Bytes cap_;
  mutable absl::Mutex mutex_;
  std::array<MemoryCount, kMemoryKinds> of_kind_ ABSL_GUARDED_BY(mutex_);
  Bytes total_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace ranklab::compute
