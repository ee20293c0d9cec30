#include "collectives/chunked_buffers.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/status.h"

namespace ranklab::collectives {
namespace {

std::vector<std::int64_t> BeginsOf(std::span<const std::int64_t> counts) {
  std::vector<std::int64_t> begins;
  if (!counts.empty()) {
    begins.push_back(0);
    std::partial_sum(counts.begin(), counts.end(), std::back_inserter(begins));
  }
  return begins;
}

absl::Status CheckCounts(const RankPlan& plan, std::span<const std::int64_t> counts,
                         std::int32_t chunks, const compute::TensorView& view,
                         std::string_view buffer) {
  std::int64_t sum = 0;
  bool negative = false;
  for (const std::int64_t count : counts) {
    negative |= count < 0;
    sum += count;
  }
  if (counts.size() != static_cast<std::size_t>(chunks) || negative ||
      sum != view.element_count()) {
    return InvalidArgument(
        "%s: %d counts of the %s blocks, %d elements in all, for %d blocks of a buffer of %d",
        plan.algorithm, counts.size(), buffer, sum, chunks, view.element_count());
  }
  return absl::OkStatus();
}

absl::Status CheckEqualChunks(const RankPlan& plan, const CallBuffers& buffers) {
  const std::int64_t elements = buffers.input.element_count();
  if (elements % plan.input_chunks != 0) {
    return InvalidArgument("%s cuts its input into %d equal chunks; %d elements cannot be",
                           plan.algorithm, plan.input_chunks, elements);
  }
  const std::int64_t wanted = elements / plan.input_chunks * plan.output_chunks;
  if (plan.output_chunks > 0 && buffers.output.element_count() != wanted) {
    return InvalidArgument("%s wants an output of %d elements; it has %d", plan.algorithm, wanted,
                           buffers.output.element_count());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ChunkedBuffers::Check(const RankPlan& plan, const CallBuffers& buffers) {
  if (plan.output_chunks > 0 && buffers.output.dtype != buffers.input.dtype) {
    return InvalidArgument("%s wants an output of the input's type", plan.algorithm);
  }
  if (plan.collective == Collective::kAllToAllV) {
    RETURN_IF_ERROR(
        CheckCounts(plan, buffers.input_counts, plan.input_chunks, buffers.input, "input"));
    return CheckCounts(plan, buffers.output_counts, plan.output_chunks, buffers.output, "output");
  }
  if (!buffers.input_counts.empty() || !buffers.output_counts.empty()) {
    return InvalidArgument("only all-to-all-v takes counts, not %s", NameOf(plan.collective));
  }
  return plan.needs_equal_chunks ? CheckEqualChunks(plan, buffers) : absl::OkStatus();
}

ChunkedBuffers::ChunkedBuffers(const RankPlan& plan, const CallBuffers& buffers,
                               transport::BufferPool& pool)
    : plan_(plan),
      pool_(pool),
      input_{buffers.input, plan.input_chunks, BeginsOf(buffers.input_counts)},
      output_{buffers.output, plan.output_chunks, BeginsOf(buffers.output_counts)},
      scratch_{buffers.input, plan.scratch_chunks} {
  std::int64_t elements = 0;
  if (plan.needs_equal_chunks) {
    elements = buffers.input.element_count() / plan.input_chunks * plan.scratch_chunks;
  } else if (!plan.scratch_like.empty()) {
    scratch_.begins.reserve(plan.scratch_like.size() + 1);
    scratch_.begins.push_back(0);
    for (const std::int32_t like : plan.scratch_like) {
      elements += input_.View(like, 1).element_count();
      scratch_.begins.push_back(elements);
    }
  }
  scratch_.whole.shape = {elements, 1, 1, 1};
  if (buffers.input.data != nullptr) {
    scratch_bytes_ = pool.Take(scratch_.whole.byte_count());
    scratch_.whole.data = scratch_bytes_.data();
  }
}

ChunkedBuffers::~ChunkedBuffers() { pool_.Give(std::move(scratch_bytes_)); }

compute::TensorView ChunkedBuffers::Cut::View(std::int32_t first, std::int32_t count) const {
  const auto begin_of = [&](std::int32_t chunk) {
    return begins.empty() ? ChunkBegin(whole.element_count(), chunk, chunks)
                          : begins[static_cast<std::size_t>(chunk)];
  };
  const std::int64_t begin = begin_of(first);
  const std::int64_t end = begin_of(first + count);
  if (whole.data == nullptr) {  // memory without bytes stays so
    return {nullptr, whole.dtype, {end - begin, 1, 1, 1}, whole.device};
  }
  return compute::Slice(whole, begin, end);
}

compute::TensorView ChunkedBuffers::View(std::int32_t first, std::int32_t count) const {
  if (first < plan_.input_chunks) {
    return input_.View(first, count);
  }
  first -= plan_.input_chunks;
  if (first < plan_.output_chunks) {
    return output_.View(first, count);
  }
  return scratch_.View(first - plan_.output_chunks, count);
}

}  // namespace ranklab::collectives
