#include "collectives/chunked_buffers.h"

#include <utility>

#include "core/status.h"

namespace ranklab::collectives {
namespace {

// The chunks [first, first + count) of `chunks` in `whole`. Memory without bytes stays so.
compute::TensorView Cut(const compute::TensorView& whole, std::int32_t first, std::int32_t count,
                        std::int32_t chunks) {
  const std::int64_t begin = ChunkBegin(whole.element_count(), first, chunks);
  const std::int64_t end = ChunkBegin(whole.element_count(), first + count, chunks);
  if (whole.data == nullptr) {
    return {nullptr, whole.dtype, {end - begin, 1, 1, 1}, whole.device};
  }
  return compute::Slice(whole, begin, end);
}

}  // namespace

absl::Status ChunkedBuffers::Check(const RankPlan& plan, const compute::TensorView& input,
                                   const compute::TensorView& output) {
  if (plan.output_chunks == 0 && plan.scratch_chunks == 0) {
    return absl::OkStatus();
  }
  const std::int64_t elements = input.element_count();
  if (elements % plan.input_chunks != 0) {
    return InvalidArgument("%s cuts its input into %d equal chunks; %d elements cannot be",
                           plan.algorithm, plan.input_chunks, elements);
  }
  if (plan.output_chunks == 0) {
    return absl::OkStatus();
  }
  const std::int64_t wanted = elements / plan.input_chunks * plan.output_chunks;
  if (output.dtype != input.dtype || output.element_count() != wanted) {
    return InvalidArgument("%s wants an output of %d elements of the input's type; it has %d",
                           plan.algorithm, wanted, output.element_count());
  }
  return absl::OkStatus();
}

ChunkedBuffers::ChunkedBuffers(const RankPlan& plan, const compute::TensorView& input,
                               const compute::TensorView& output, transport::BufferPool& pool)
    : plan_(plan), input_(input), output_(output), pool_(pool), scratch_(input) {
  scratch_.shape = {input.element_count() / plan.input_chunks * plan.scratch_chunks, 1, 1, 1};
  if (input.data != nullptr) {
    scratch_bytes_ = pool.Take(scratch_.byte_count());
    scratch_.data = scratch_bytes_.data();
  }
}

ChunkedBuffers::~ChunkedBuffers() { pool_.Give(std::move(scratch_bytes_)); }

compute::TensorView ChunkedBuffers::View(std::int32_t first, std::int32_t count) const {
  if (first < plan_.input_chunks) {
    return Cut(input_, first, count, plan_.input_chunks);
  }
  first -= plan_.input_chunks;
  if (first < plan_.output_chunks) {
    return Cut(output_, first, count, plan_.output_chunks);
  }
  return Cut(scratch_, first - plan_.output_chunks, count, plan_.scratch_chunks);
}

}  // namespace ranklab::collectives
