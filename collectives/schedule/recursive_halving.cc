#include "collectives/schedule/recursive_halving.h"

#include "collectives/schedule/folding.h"
#include "collectives/schedule/halving.h"
#include "collectives/schedule/op_list.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

// The blocks of `count` numbers from `first` on: two each where ranks are paired.
auto BlocksOf(const Folding& folding) {
  return [folding](int first, int count) {
    const Rank begin = folding.RankOf(first);
    return Chunks{begin, folding.RankOf(first + count) - begin};
  };
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
  Halve(list, folding, folding.NumberOf(rank), BlocksOf(folding));
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
  Double(list, folding, folding.NumberOf(rank), BlocksOf(folding));
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
  schedule.digits = Folding(options.group_size).Bits();
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
