#include "collectives/schedule/binomial.h"

#include <algorithm>
#include <utility>

#include "collectives/schedule/folding.h"
#include "collectives/schedule/in_channels.h"
#include "collectives/schedule/op_list.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

constexpr Chunks kBuffer = {.first = 0};

// One rank's place in the tree.
class Place {
 public:
  Place(const BuildOptions& options, Rank rank)
      : size_(options.group_size),
        root_(options.root),
        number_((rank - options.root + size_) % size_),
        reach_(number_ == 0 ? 1 << CeilLog2(size_) : number_ & -number_) {}

  bool is_root() const { return number_ == 0; }
  Rank parent() const { return RankOf(number_ - reach_); }

  // Calls visit(child, its number), those with the smallest subtrees first.
  template <typename Visit>
  void ForEachChildUpwards(Visit visit) const {
    for (int step = 1; step < reach_ && number_ + step < size_; step *= 2) {
      visit(RankOf(number_ + step), number_ + step);
    }
  }
  template <typename Visit>
  void ForEachChildDownwards(Visit visit) const {
    for (int step = reach_ / 2; step >= 1; step /= 2) {
      if (number_ + step < size_) {
        visit(RankOf(number_ + step), number_ + step);
      }
    }
  }

  // The blocks of a subtree, in one or two runs. Calls visit(chunks).
  template <typename Visit>
  void ForEachRun(int number, Visit visit) const {
    const int count = std::min(number & -number, size_ - number);
    const std::int32_t first = RankOf(number);
    const std::int32_t straight = std::min(count, size_ - first);
    visit(Chunks{first, straight});
    visit(Chunks{0, count - straight});
  }

  int number() const { return number_; }

 private:
  Rank RankOf(int number) const { return (number + root_) % size_; }

  int size_;
  Rank root_;
  int number_;
  int reach_;  // the next number that is not in its subtree, in a full tree
};

void Reduce(OpList& list, const Place& place) {
  place.ForEachChildUpwards([&](Rank child, int) { list.RecvReduce(child, kBuffer); });
  if (!place.is_root()) {
    list.Send(place.parent(), kBuffer);
  }
}

void Broadcast(OpList& list, const Place& place) {
  if (!place.is_root()) {
    list.Recv(place.parent(), kBuffer);
  }
  place.ForEachChildDownwards([&](Rank child, int) { list.Send(child, kBuffer); });
}

void Gather(OpList& list, const Place& place) {
  place.ForEachChildUpwards([&](Rank child, int number) {
    place.ForEachRun(number, [&](Chunks run) { list.Recv(child, run); });
  });
  if (!place.is_root()) {
    place.ForEachRun(place.number(), [&](Chunks run) { list.Send(place.parent(), run); });
  }
}

void Scatter(OpList& list, const Place& place) {
  if (!place.is_root()) {
    place.ForEachRun(place.number(), [&](Chunks run) { list.Recv(place.parent(), run); });
  }
  place.ForEachChildDownwards([&](Rank child, int number) {
    place.ForEachRun(number, [&](Chunks run) { list.Send(child, run); });
  });
}

// A list is made of `parts` in order.
using Part = void (*)(OpList&, const Place&);

absl::StatusOr<Schedule> Build(Collective collective, std::int32_t chunks,
                               const BuildOptions& options, std::vector<Part> parts) {
  RETURN_IF_ERROR(CheckBuildOptions(options, kMostListedRanks));
  Schedule schedule;
  schedule.name = "binomial";
  schedule.collective = collective;
  schedule.group_size = options.group_size;
  schedule.root = options.root;
  schedule.input_chunks = chunks;
  schedule.ops_of = [options, chunks, parts = std::move(parts)](Rank rank) {
    OpList list(chunks);
    for (const Part part : parts) {
      part(list, Place(options, rank));
    }
    return list.Take();
  };
  return schedule;
}

absl::StatusOr<Schedule> BuildPipelined(Collective collective, const BuildOptions& options,
                                        std::vector<Part> parts) {
  ASSIGN_OR_RETURN(Schedule schedule, Build(collective, 1, options, std::move(parts)));
  return InChannels(std::move(schedule), {.slices = options.chunks_per_rank});
}

}  // namespace

absl::StatusOr<Schedule> BuildBinomialAllReduce(const BuildOptions& options) {
  BuildOptions from_first = options;
  from_first.root = 0;
  return BuildPipelined(Collective::kAllReduce, from_first, {Reduce, Broadcast});
}
absl::StatusOr<Schedule> BuildBinomialBroadcast(const BuildOptions& options) {
  return BuildPipelined(Collective::kBroadcast, options, {Broadcast});
}
absl::StatusOr<Schedule> BuildBinomialReduce(const BuildOptions& options) {
  return BuildPipelined(Collective::kReduce, options, {Reduce});
}
absl::StatusOr<Schedule> BuildBinomialGather(const BuildOptions& options) {
  return Build(Collective::kGather, options.group_size, options, {Gather});
}
absl::StatusOr<Schedule> BuildBinomialScatter(const BuildOptions& options) {
  return Build(Collective::kScatter, options.group_size, options, {Scatter});
}

}  // namespace ranklab::collectives
