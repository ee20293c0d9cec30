#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

std::string_view NameOf(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
      return "all-reduce";
    case Collective::kReduceScatter:
      return "reduce-scatter";
    case Collective::kAllGather:
      return "all-gather";
    case Collective::kBroadcast:
      return "broadcast";
    case Collective::kReduce:
      return "reduce";
    case Collective::kGather:
      return "gather";
    case Collective::kScatter:
      return "scatter";
    case Collective::kAllToAll:
      return "all-to-all";
    case Collective::kAllToAllV:
      return "all-to-all-v";
    case Collective::kBarrier:
      return "barrier";
  }
  return "unknown collective";
}

std::string_view NameOf(OpKind kind) {
  switch (kind) {
    case OpKind::kSend:
      return "send";
    case OpKind::kRecv:
      return "recv";
    case OpKind::kRecvReduce:
      return "recv-reduce";
    case OpKind::kCopy:
      return "copy";
    case OpKind::kReduce:
      return "reduce";
  }
  return "unknown op";
}

std::int64_t ElementsIn(const Schedule& schedule, Rank rank, std::int64_t elements,
                        std::int32_t first, std::int32_t count) {
  const auto even = [&](std::int32_t begin, std::int32_t chunks) {
    return ChunkBegin(elements, begin + chunks, schedule.input_chunks) -
           ChunkBegin(elements, begin, schedule.input_chunks);
  };
  if (first < schedule.input_chunks) {
    return even(first, count);
  }
  if (schedule.needs_equal_chunks()) {
    return count * even(0, 1);
  }
  std::int64_t sum = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    sum += even(schedule.scratch_like(rank, first + i - schedule.first_scratch_chunk()), 1);
  }
  return sum;
}

}  // namespace ranklab::collectives
