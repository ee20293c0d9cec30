#include "compute/cuda/scratch.h"

#include "compute/cuda/stream_memory.h"
#include "core/status.h"

namespace ranklab::compute::cuda {

Scratch::~Scratch() {
  if (memory_ != nullptr) {
    FreeOn(stream_, memory_);
  }
}

absl::StatusOr<void*> Scratch::Take(Bytes size) {
  if (size > size_) {
    if (memory_ != nullptr) {
      RETURN_IF_ERROR(StatusOf(FreeOn(stream_, memory_), "memory between kernels"));
    }
    memory_ = nullptr;
    size_ = 0;
    RETURN_IF_ERROR(StatusOf(AllocateOn(stream_, size, &memory_), "memory between kernels"));
    size_ = size;
  }
  return memory_;
}

}  // namespace ranklab::compute::cuda
