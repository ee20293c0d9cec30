#include "collectives/schedule/recursive_halving.h"

#include "collectives/schedule/folding.h"
#include "collectives/schedule/op_list.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

// The blocks of `count` numbers from `first` on: two each where ranks are paired.
Chunks BlocksOf(const Folding& folding, int first, int count) {
  const Rank begin = folding.RankOf(first);
  return {begin, folding.RankOf(first + count) - begin};
}

std::vector<Op> ReduceScatterList(const Folding& folding, Rank rank, int size) {
  const Chunks all = {0, size};
  OpList list(size);
  if (folding.folded(rank)) {
    list.Send(rank - 1, all);
    list.Recv(rank - 1, {rank});
    return list.Take();
  }
  if (folding.paired(rank)) {
    list.RecvReduce(rank + 1, all);
  }
  const int number = folding.NumberOf(rank);
  for (int half = folding.core / 2; half >= 1; half /= 2) {
    const Rank peer = folding.RankOf(number ^ half);
    const int kept = number & ~(half - 1);
    list.Send(peer, BlocksOf(folding, kept ^ half, half));
    list.RecvReduce(peer, BlocksOf(folding, kept, half));
  }
  if (folding.paired(rank)) {
    list.Send(rank + 1, {rank + 1});
  }
  return list.Take();
}

std::vector<Op> AllGatherList(const Folding& folding, Rank rank, int size) {
  const Chunks all = {0, size};
  OpList list(size);
  if (folding.folded(rank)) {
    list.Send(rank - 1, {rank});
    list.Recv(rank - 1, all);
    return list.Take();
  }
  if (folding.paired(rank)) {
    list.Recv(rank + 1, {rank + 1});
  }
  const int number = folding.NumberOf(rank);
  for (int count = 1; count < folding.core; count *= 2) {
    const Rank peer = folding.RankOf(number ^ count);
    const int mine = number & ~(count - 1);
    list.Send(peer, BlocksOf(folding, mine, count));
    list.Recv(peer, BlocksOf(folding, mine ^ count, count));
  }
  if (folding.paired(rank)) {
    list.Send(rank + 1, all);
  }
  return list.Take();
}

using ListOf = std::vector<Op> (*)(const Folding&, Rank, int);

absl::StatusOr<Schedule> Build(Collective collective, ListOf list_of, const BuildOptions& options) {
  RETURN_IF_ERROR(CheckBuildOptions(options, kMostListedRanks));
  Schedule schedule;
  schedule.name = "recursive";
  schedule.collective = collective;
  schedule.group_size = options.group_size;
  schedule.input_chunks = options.group_size;
  schedule.ops_of = [list_of, folding = Folding(options.group_size),
                     size = options.group_size](Rank rank) { return list_of(folding, rank, size); };
  return schedule;
}

}  // namespace

absl::StatusOr<Schedule> BuildRecursiveReduceScatter(const BuildOptions& options) {
  return Build(Collective::kReduceScatter, ReduceScatterList, options);
}
absl::StatusOr<Schedule> BuildRecursiveAllGather(const BuildOptions& options) {
  return Build(Collective::kAllGather, AllGatherList, options);
}

}  // namespace ranklab::collectives
