// Device memory for what one kernel leaves for the next on the same stream.
#pragma once

#include <absl/status/statusor.h>

#include "compute/cuda/launch.h"
#include "core/units.h"

namespace ranklab::compute::cuda {

// Grows to the largest size asked for, and is not counted. One user at a time.
class Scratch {
 public:
  explicit Scratch(Stream stream) : stream_(stream) {}
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // Valid until the next call; 256-byte aligned, contents undefined. Errors: ResourceExhausted.
  absl::StatusOr<void*> Take(Bytes size);

 private:
  const Stream stream_;
  void* memory_ = nullptr;
  Bytes size_ = 0;
};

}  // namespace ranklab::compute::cuda
