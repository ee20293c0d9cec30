#include "collectives/schedule/bruck.h"

#include <algorithm>

#include "collectives/schedule/op_list.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

// Scratch block j of rank r stands for block r + j, so that what is sent lies together.
std::vector<Op> AllGatherList(int size, Rank rank) {
  const std::int32_t scratch = size;
  OpList list(2 * size);
  if (size > 1) {
    list.Copy({scratch}, rank);
  }
  for (int known = 1; known < size; known *= 2) {
    const std::int32_t count = std::min(known, size - known);
    list.Send((rank - known + size) % size, {scratch, count});
    list.Recv((rank + known) % size, {scratch + known, count});
  }
  list.Copy({rank + 1, size - rank - 1}, scratch + 1);
  list.Copy({0, rank}, scratch + size - rank);
  return list.Take();
}

// Block j of the work area of rank r travels j ranks on: in round k if bit k of j is set.
class AllToAllList {
 public:
  AllToAllList(int size, Rank rank) : size_(size), rank_(rank), list_(3 * size + 2 * (size / 2)) {}

  std::vector<Op> Take() && {
    list_.Copy({work_, size_ - rank_}, rank_);
    list_.Copy({work_ + size_ - rank_, rank_}, 0);
    for (int distance = 1; distance < size_; distance *= 2) {
      Round(distance);
    }
    for (int block = 0; block < size_; ++block) {
      list_.Copy({output_ + (rank_ - block + size_) % size_}, work_ + block);
    }
    return list_.Take();
  }

 private:
  void Round(int distance) {
    const std::int32_t count = ForEachRun(distance, [&](Chunks run, std::int32_t before) {
      list_.Copy({leaving_ + before, run.count}, run.first);
    });
    list_.Send((rank_ + distance) % size_, {leaving_, count});
    list_.Recv((rank_ - distance + size_) % size_, {arrived_, count});
    ForEachRun(distance,
               [&](Chunks run, std::int32_t before) { list_.Copy(run, arrived_ + before); });
  }

  // Calls visit(run, blocks before it) for the runs of blocks that travel; returns their number.
  template <typename Visit>
  std::int32_t ForEachRun(int distance, Visit visit) const {
    std::int32_t before = 0;
    for (int block = distance; block < size_; block += 2 * distance) {
      const std::int32_t count = std::min(distance, size_ - block);
      visit(Chunks{work_ + block, count}, before);
      before += count;
    }
    return before;
  }

  int size_;
  Rank rank_;
  OpList list_;
  std::int32_t output_ = size_;
  std::int32_t work_ = 2 * size_;
  std::int32_t leaving_ = 3 * size_;
  std::int32_t arrived_ = leaving_ + size_ / 2;
};

}  // namespace

absl::StatusOr<Schedule> BuildBruckAllGather(const BuildOptions& options) {
  RETURN_IF_ERROR(CheckBuildOptions(options, kMostListedRanks));
  const int size = options.group_size;
  Schedule schedule;
  schedule.name = "bruck";
  schedule.collective = Collective::kAllGather;
  schedule.group_size = size;
  schedule.input_chunks = size;
  schedule.scratch_chunks = size;
  schedule.scratch_like = [size](Rank rank, std::int32_t chunk) { return (rank + chunk) % size; };
  schedule.ops_of = [size](Rank rank) { return AllGatherList(size, rank); };
  return schedule;
}

absl::StatusOr<Schedule> BuildBruckAllToAll(const BuildOptions& options) {
  RETURN_IF_ERROR(CheckBuildOptions(options, kMostListedRanks));
  const int size = options.group_size;
  Schedule schedule;
  schedule.name = "bruck";
  schedule.collective = Collective::kAllToAll;
  schedule.group_size = size;
  schedule.input_chunks = size;
  schedule.output_chunks = size;
  schedule.scratch_chunks = size + 2 * (size / 2);
  schedule.ops_of = [size](Rank rank) { return AllToAllList(size, rank).Take(); };
  return schedule;
}

}  // namespace ranklab::collectives
