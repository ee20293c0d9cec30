#include "worker/batch.h"

#include <span>

#include "core/check.h"

namespace ranklab::worker {
namespace {

// Rows [first, first + count) of width `width`.
template <typename T>
compute::TensorView RowsOf(std::vector<T>& values, std::int64_t first, std::int64_t count,
                           std::int64_t width) {
  return Reshape(compute::HostView(std::span(values).subspan(first * width, count * width)),
                 {count, width, 1, 1});
}

}  // namespace

Batch BatchOf(Split& split, std::int64_t first, std::int64_t last) {
  RANKLAB_CHECK(0 <= first && first < last && last <= split.samples(), "samples [%d, %d) of %d",
                first, last, split.samples());
  const std::int64_t count = last - first;
  return {.inputs = split.tokens.empty() ? RowsOf(split.inputs, first, count, split.width())
                                         : RowsOf(split.tokens, first, count, split.width()),
          .labels = RowsOf(split.labels, first, count, split.labels_per_sample)};
}

}  // namespace ranklab::worker
