#include "collectives/schedule/promise.h"

#include "core/check.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

// Chunks of the whole vector: a block of them for each rank, except for all-reduce.
std::int32_t Positions(const Schedule& schedule) {
  return schedule.collective == Collective::kAllGather && schedule.output_chunks > 0
             ? schedule.output_chunks
             : schedule.input_chunks;
}

std::int32_t BlockSize(const Schedule& schedule) {
  return Positions(schedule) / schedule.group_size;
}

}  // namespace

absl::Status CheckShape(const Schedule& schedule) {
  const std::int64_t ranks = schedule.group_size;
  const std::int64_t input = schedule.input_chunks;
  const std::int64_t output = schedule.output_chunks;
  if (ranks < 1 || input < 1 || output < 0 || schedule.scratch_chunks < 0) {
    return FailedPrecondition(
        "%s: %d ranks, %d input, %d output and %d scratch chunks: ranks and input must be at least "
        "1, none negative",
        schedule.name, ranks, input, output, schedule.scratch_chunks);
  }
  const bool in_place = output == 0;
  bool fits = false;
  switch (schedule.collective) {
    case Collective::kAllReduce:
      fits = in_place || output == input;
      break;
    case Collective::kReduceScatter:
      fits = in_place ? input % ranks == 0 : output * ranks == input;
      break;
    case Collective::kAllGather:
      fits = in_place ? input % ranks == 0 : input * ranks == output;
      break;
    default:
      return Unimplemented("%s: the verifier knows no promise of %s", schedule.name,
                           NameOf(schedule.collective));
  }
  if (!fits) {
    return FailedPrecondition("%s: %d input and %d output chunks do not fit %s over %d ranks",
                              schedule.name, input, output, NameOf(schedule.collective), ranks);
  }
  return absl::OkStatus();
}

std::optional<Position> ContributionOf(const Schedule& schedule, Rank rank, std::int32_t chunk) {
  if (chunk >= schedule.input_chunks) {
    return std::nullopt;
  }
  if (schedule.collective != Collective::kAllGather) {
    return chunk;
  }
  if (schedule.output_chunks > 0) {
    return rank * schedule.input_chunks + chunk;
  }
  return chunk / BlockSize(schedule) == rank ? std::optional(chunk) : std::nullopt;
}

std::optional<Result> PromiseOf(const Schedule& schedule, Rank rank, std::int32_t chunk) {
  const bool in_place = schedule.output_chunks == 0;
  const std::int32_t offset = chunk - schedule.first_output_chunk();
  const std::int32_t size = in_place ? schedule.input_chunks : schedule.output_chunks;
  if (offset < 0 || offset >= size) {
    return std::nullopt;
  }
  switch (schedule.collective) {
    case Collective::kAllReduce:
      return Result{offset, std::nullopt};
    case Collective::kReduceScatter:
      if (!in_place) {
        return Result{rank * size + offset, std::nullopt};
      }
      return offset / BlockSize(schedule) == rank ? std::optional(Result{offset, std::nullopt})
                                                  : std::nullopt;
    case Collective::kAllGather:
      return Result{offset, offset / BlockSize(schedule)};
    default:
      break;
  }
  RANKLAB_CHECK(false, "no promise of %s", NameOf(schedule.collective));
  return std::nullopt;
}

}  // namespace ranklab::collectives
