#include "collectives/schedule/promise.h"

#include "core/status.h"

namespace ranklab::collectives {

Shape ShapeOf(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
    case Collective::kBroadcast:
    case Collective::kReduce:
    case Collective::kBarrier:
      return Shape::kWhole;
    case Collective::kReduceScatter:
    case Collective::kScatter:
      return Shape::kShrinks;
    case Collective::kAllGather:
    case Collective::kGather:
      return Shape::kGrows;
    case Collective::kAllToAll:
    case Collective::kAllToAllV:
      break;
  }
  return Shape::kExchanges;
}

namespace {

bool Fits(const Schedule& schedule) {
  const std::int64_t ranks = schedule.group_size;
  const std::int64_t input = schedule.input_chunks;
  const std::int64_t output = schedule.output_chunks;
  const bool in_place = output == 0;
  switch (ShapeOf(schedule.collective)) {
    case Shape::kWhole:
      return in_place || output == input;
    case Shape::kShrinks:
      return in_place ? input % ranks == 0 : output * ranks == input;
    case Shape::kGrows:
      return in_place ? input % ranks == 0 : input * ranks == output;
    case Shape::kExchanges:
      return input % ranks == 0 && (in_place || output == input);
  }
  return false;
}

// Chunks of one rank's part.
std::int32_t BlockSize(const Schedule& schedule) {
  const bool grows = ShapeOf(schedule.collective) == Shape::kGrows && schedule.output_chunks > 0;
  return grows ? schedule.input_chunks : schedule.input_chunks / schedule.group_size;
}

bool OnlyTheRootContributes(Collective collective) {
  return collective == Collective::kBroadcast || collective == Collective::kScatter;
}

bool OnlyTheRootIsPromised(Collective collective) {
  return collective == Collective::kReduce || collective == Collective::kGather;
}

}  // namespace

absl::Status CheckShape(const Schedule& schedule) {
  const int ranks = schedule.group_size;
  if (ranks < 1 || schedule.input_chunks < 1 || schedule.output_chunks < 0 ||
      schedule.scratch_chunks < 0) {
    return FailedPrecondition(
        "%s: %d ranks, %d input, %d output and %d scratch chunks: ranks and input must be at least "
        "1, none negative",
        schedule.name, ranks, schedule.input_chunks, schedule.output_chunks,
        schedule.scratch_chunks);
  }
  if (schedule.root < 0 || schedule.root >= ranks) {
    return FailedPrecondition("%s: root %d is none of the ranks 0 to %d", schedule.name,
                              schedule.root, ranks - 1);
  }
  if (!Fits(schedule)) {
    return FailedPrecondition("%s: %d input and %d output chunks do not fit %s over %d ranks",
                              schedule.name, schedule.input_chunks, schedule.output_chunks,
                              NameOf(schedule.collective), ranks);
  }
  if (schedule.collective == Collective::kAllToAllV && schedule.scratch_chunks > 0) {
    return FailedPrecondition(
        "%s: %d scratch chunks: they are cut evenly, but the blocks of all-to-all-v are as large "
        "as each call says",
        schedule.name, schedule.scratch_chunks);
  }
  return absl::OkStatus();
}

std::optional<Position> ContributionOf(const Schedule& schedule, Rank rank, std::int32_t chunk) {
  if (chunk >= schedule.input_chunks ||
      (OnlyTheRootContributes(schedule.collective) && rank != schedule.root)) {
    return std::nullopt;
  }
  switch (ShapeOf(schedule.collective)) {
    case Shape::kWhole:
    case Shape::kShrinks:
      return chunk;
    case Shape::kGrows:
      if (schedule.output_chunks > 0) {
        return Position{rank} * schedule.input_chunks + chunk;
      }
      return chunk / BlockSize(schedule) == rank ? std::optional<Position>(chunk) : std::nullopt;
    case Shape::kExchanges:
      break;
  }
  return Position{rank} * schedule.input_chunks + chunk;
}

std::optional<Result> PromiseOf(const Schedule& schedule, Rank rank, std::int32_t chunk) {
  const bool in_place = schedule.output_chunks == 0;
  const std::int32_t offset = chunk - schedule.first_output_chunk();
  const std::int32_t size = in_place ? schedule.input_chunks : schedule.output_chunks;
  if (offset < 0 || offset >= size ||
      (OnlyTheRootIsPromised(schedule.collective) && rank != schedule.root)) {
    return std::nullopt;
  }
  const std::int32_t block = BlockSize(schedule);
  const std::optional<Rank> contributor =
      OnlyTheRootContributes(schedule.collective) ? std::optional(schedule.root) : std::nullopt;
  switch (ShapeOf(schedule.collective)) {
    case Shape::kWhole:
      return Result{offset, contributor};
    case Shape::kShrinks:
      if (!in_place) {
        return Result{Position{rank} * size + offset, contributor};
      }
      return offset / block == rank ? std::optional(Result{offset, contributor}) : std::nullopt;
    case Shape::kGrows:
      return Result{offset, offset / block};
    case Shape::kExchanges:
      break;
  }
  const Rank from = offset / block;
  return Result{Position{from} * schedule.input_chunks + rank * block + offset % block, from};
}

}  // namespace ranklab::collectives
