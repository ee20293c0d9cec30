#include "collectives/schedule/rabenseifner.h"

#include <utility>

#include "collectives/schedule/folding.h"
#include "collectives/schedule/halving.h"
#include "collectives/schedule/in_channels.h"
#include "collectives/schedule/op_list.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

// A pair shares its reduction: each sums one half, and the even rank ends with both.
void Fold(OpList& list, const Folding& folding, Rank rank) {
  const std::int32_t half = folding.core / 2;
  const Chunks lower = {0, half};
  const Chunks upper = {half, half};
  if (folding.folded(rank)) {
    list.Send(rank - 1, lower);
    list.RecvReduce(rank - 1, upper);
    list.Send(rank - 1, upper);
  } else {
    list.Send(rank + 1, upper);
    list.RecvReduce(rank + 1, lower);
    list.Recv(rank + 1, upper);
  }
}

std::vector<Op> ListOf(const Folding& folding, Rank rank) {
  const Chunks all = {0, folding.core};
  OpList list(folding.core);
  if (folding.paired(rank)) {
    Fold(list, folding, rank);
  }
  if (folding.folded(rank)) {
    list.Recv(rank - 1, all);
    return list.Take();
  }
  const auto chunks_of = [](int first, int count) { return Chunks{first, count}; };
  Halve(list, folding, folding.NumberOf(rank), chunks_of);
  Double(list, folding, folding.NumberOf(rank), chunks_of);
  if (folding.paired(rank)) {
    list.Send(rank + 1, all);
  }
  return list.Take();
}

}  // namespace

absl::StatusOr<Schedule> BuildRabenseifner(const BuildOptions& options) {
  RETURN_IF_ERROR(CheckBuildOptions(options, kMostListedRanks));
  const Folding folding(options.group_size);
  Schedule schedule;
  schedule.name = "rabenseifner";
  schedule.collective = Collective::kAllReduce;
  schedule.group_size = options.group_size;
  schedule.input_chunks = folding.core;
  schedule.digits = folding.Bits();
  schedule.ops_of = [folding](Rank rank) { return ListOf(folding, rank); };
  return InChannels(std::move(schedule), {.slices = options.chunks_per_rank});
}

}  // namespace ranklab::collectives
