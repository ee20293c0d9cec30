// Where the chunks of one call lie in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <absl/status/status.h>

#include "collectives/rank_plan.h"
#include "compute/tensor.h"
#include "transport/buffer_pool.h"

namespace ranklab::collectives {

// The buffers of one call. `counts`: elements of each chunk of input and output where the call
// gives them (all-to-all-v), empty where the buffers are cut evenly.
struct CallBuffers {
  compute::TensorView input;
  compute::TensorView output{};
  std::span<const std::int64_t> input_counts{};
  std::span<const std::int64_t> output_counts{};
};

class ChunkedBuffers {
 public:
  // Errors: as Execute, about element counts.
  static absl::Status Check(const RankPlan& plan, const CallBuffers& buffers);

  // Requires: Check is Ok. `pool` lends the scratch chunks.
  ChunkedBuffers(const RankPlan& plan, const CallBuffers& buffers, transport::BufferPool& pool);
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
  // One buffer: where its chunks begin, if they are not cut evenly.
  struct Cut {
    compute::TensorView whole;
    std::int32_t chunks = 0;
    std::vector<std::int64_t> begins{};  // and the end

    compute::TensorView View(std::int32_t first, std::int32_t count) const;
  };

  const RankPlan& plan_;
  transport::BufferPool& pool_;
  Cut input_;
  Cut output_;
  Cut scratch_;
  transport::Buffer scratch_bytes_;
};

}  // namespace ranklab::collectives
