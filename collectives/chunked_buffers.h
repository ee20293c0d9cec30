// Where the chunks of one call lie in memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include <absl/status/status.h>

#include "collectives/rank_plan.h"
#include "compute/tensor.h"
#include "transport/buffer_pool.h"

namespace ranklab::collectives {

class ChunkedBuffers {
 public:
  // Errors: as Execute, about element counts.
  static absl::Status Check(const RankPlan& plan, const compute::TensorView& input,
                            const compute::TensorView& output);

  // Requires: Check is Ok. `pool` lends the scratch chunks.
  ChunkedBuffers(const RankPlan& plan, const compute::TensorView& input,
                 const compute::TensorView& output, transport::BufferPool& pool);
  ~ChunkedBuffers();
  ChunkedBuffers(const ChunkedBuffers&) = delete;
  ChunkedBuffers& operator=(const ChunkedBuffers&) = delete;

  // `count` chunks of one buffer, as shape (elements).
  compute::TensorView View(std::int32_t first, std::int32_t count) const;

  // The same shape at `data`.
  static compute::TensorView At(compute::TensorView shape, std::byte* data) {
    shape.data = data;
    return shape;
  }

 private:
  const RankPlan& plan_;
  compute::TensorView input_;
  compute::TensorView output_;
  transport::BufferPool& pool_;
  transport::Buffer scratch_bytes_;
  compute::TensorView scratch_;
};

}  // namespace ranklab::collectives
