#include "collectives/schedule/recursive_doubling.h"

#include <utility>

#include "collectives/schedule/folding.h"
#include "collectives/schedule/in_channels.h"
#include "collectives/schedule/op_list.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

constexpr Chunks kBuffer = {.first = 0};
constexpr Chunks kArrived = {.first = 1};  // scratch: the buffer is still being sent

std::vector<Op> ListOf(const Folding& folding, Rank rank) {
  OpList list(2);
  if (folding.folded(rank)) {
    list.Send(rank - 1, kBuffer);
    list.Recv(rank - 1, kBuffer);
    return list.Take();
  }
  if (folding.paired(rank)) {
    list.RecvReduce(rank + 1, kBuffer);
  }
  for (int bit = 1; bit < folding.core; bit *= 2) {
    const Rank peer = folding.RankOf(folding.NumberOf(rank) ^ bit);
    list.Send(peer, kBuffer);
    list.Recv(peer, kArrived);
    list.Reduce(kBuffer, kArrived.first);
  }
  if (folding.paired(rank)) {
    list.Send(rank + 1, kBuffer);
  }
  return list.Take();
}

}  // namespace

absl::StatusOr<Schedule> BuildRecursiveDoubling(const BuildOptions& options) {
  RETURN_IF_ERROR(CheckBuildOptions(options, kMostListedRanks));
  Schedule schedule;
  schedule.name = "recursive_doubling";
  schedule.collective = Collective::kAllReduce;
  schedule.group_size = options.group_size;
  schedule.input_chunks = 1;
  schedule.scratch_chunks = 1;
  schedule.digits = Folding(options.group_size).Bits();
  schedule.scratch_like = [](Rank, std::int32_t) { return 0; };
  schedule.ops_of = [folding = Folding(options.group_size)](Rank rank) {
    return ListOf(folding, rank);
  };
  return InChannels(std::move(schedule), {.slices = options.chunks_per_rank});
}

}  // namespace ranklab::collectives
