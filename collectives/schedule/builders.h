#pragma once

#include <absl/status/statusor.h>

#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

// All-reduce as reduce-scatter then all-gather around a ring. Steps: 2(P-1); bytes sent per rank:
// 2S(P-1)/P. Source: Patarasuk & Yuan, JPDC 69(2), 2009.
// Errors: InvalidArgument if group_size < 1 or chunks_per_rank < 1.
struct RingOptions {
  int group_size = 0;
  int chunks_per_rank = 1;  // more than one pipelines the reduction with the wire
};
absl::StatusOr<Schedule> BuildRingAllReduce(const RingOptions& options);

// Its two halves. Steps: P-1 each; bytes sent per rank: S(P-1)/P. In place: rank r ends with, or
// starts from, the chunks [r c, (r+1) c) of P c, c = chunks_per_rank.
absl::StatusOr<Schedule> BuildRingReduceScatter(const RingOptions& options);
absl::StatusOr<Schedule> BuildRingAllGather(const RingOptions& options);

}  // namespace ranklab::collectives
