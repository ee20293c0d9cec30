// Buffers for messages on their way into a reduction: how many a run may have at once.
#pragma once

#include <utility>

#include "core/units.h"
#include "transport/buffer_pool.h"

namespace ranklab::collectives {

class LandingWindow {
 public:
  // `pool` must outlive this.
  explicit LandingWindow(transport::BufferPool& pool) : pool_(pool) {}

  // Two always fit: one is reduced while the next arrives.
  bool Fits(Bytes size) const { return count_ < 2 || bytes_ + size <= kMostBytes; }

  // Whether or not it fits. Memory of its own, or none: then only the size is counted.
  transport::Buffer Take(Bytes size, bool with_memory) {
    ++count_;
    bytes_ += size;
    return with_memory ? pool_.Take(size) : transport::Buffer();
  }

  // `size` as it was taken.
  void Give(transport::Buffer buffer, Bytes size) {
    --count_;
    bytes_ -= size;
    pool_.Give(std::move(buffer));
  }

 private:
  static constexpr Bytes kMostBytes = 8 << 20;

  transport::BufferPool& pool_;
  int count_ = 0;
  Bytes bytes_ = 0;
};

}  // namespace ranklab::collectives
