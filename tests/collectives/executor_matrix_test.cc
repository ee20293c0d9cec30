// Every algorithm of the catalog, run on messages, against the sequential result.
#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/schedule/catalog.h"
#include "core/random.h"
#include "tests/collectives/collective_cluster.h"

namespace ranklab::collectives {
namespace {

// What rank `rank` brings at `index`: small whole numbers, whose sums are exact in every order.
template <typename T>
T Brought(Rank rank, std::int64_t index) {
  return static_cast<T>((index * 31 + rank * 17) % 1009 - 500);
}

template <typename T>
T Sum(int ranks, std::int64_t index) {
  T sum = 0;
  for (Rank rank = 0; rank < ranks; ++rank) {
    sum += Brought<T>(rank, index);
  }
  return sum;
}

constexpr std::int64_t kUntouched = 99'999;

struct Block {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  bool Has(std::int64_t index) const { return index >= begin && index < end; }
};
Block BlockOf(Rank rank, int ranks, std::int64_t elements) {
  return {elements * rank / ranks, elements * (rank + 1) / ranks};
}
Rank OwnerOf(std::int64_t index, int ranks, std::int64_t elements) {
  Rank owner = 0;
  while (!BlockOf(owner, ranks, elements).Has(index)) {
    ++owner;
  }
  return owner;
}

struct Work {
  Collective collective = Collective::kAllReduce;
  int ranks = 0;
  Rank root = 0;
  std::int64_t elements = 0;

  // Elements from rank `from` to rank `to` in an all-to-all; some blocks are empty.
  std::int64_t BlockSize(Rank from, Rank to) const {
    return collective == Collective::kAllToAllV ? (from * 5 + to * 3 + elements) % 7
                                                : elements / ranks;
  }
};

bool IsExchange(Collective collective) {
  return collective == Collective::kAllToAll || collective == Collective::kAllToAllV;
}

// One rank's buffers, and what must be in the one with the result: nothing where nothing is
// promised.
template <typename T>
struct Side {
  std::vector<T> input;
  std::vector<T> output;
  std::vector<std::int64_t> input_counts;
  std::vector<std::int64_t> output_counts;
  std::vector<std::optional<T>> expected;
};

// A rank numbers the elements it sends block by block.
template <typename T>
Side<T> ExchangeSideOf(const Work& work, Rank rank) {
  Side<T> side;
  for (Rank peer = 0; peer < work.ranks; ++peer) {
    side.input_counts.push_back(work.BlockSize(rank, peer));
    side.output_counts.push_back(work.BlockSize(peer, rank));
    std::int64_t index = 0;
    for (Rank before = 0; before < rank; ++before) {
      index += work.BlockSize(peer, before);
    }
    for (std::int64_t i = 0; i < work.BlockSize(peer, rank); ++i) {
      side.expected.push_back(Brought<T>(peer, index + i));
    }
    for (std::int64_t i = 0; i < work.BlockSize(rank, peer); ++i) {
      side.input.push_back(Brought<T>(rank, static_cast<std::int64_t>(side.input.size())));
    }
  }
  side.output.resize(side.expected.size(), static_cast<T>(kUntouched));
  if (work.collective == Collective::kAllToAll) {
    side.input_counts.clear();
    side.output_counts.clear();
  }
  return side;
}

template <typename T>
std::optional<T> ExpectedAt(const Work& work, Rank rank, std::int64_t index) {
  const bool mine = BlockOf(rank, work.ranks, work.elements).Has(index);
  const bool at_root = rank == work.root;
  switch (work.collective) {
    case Collective::kAllReduce:
      return Sum<T>(work.ranks, index);
    case Collective::kReduceScatter:
      return mine ? std::optional(Sum<T>(work.ranks, index)) : std::nullopt;
    case Collective::kAllGather:
      return Brought<T>(OwnerOf(index, work.ranks, work.elements), index);
    case Collective::kBroadcast:
      return Brought<T>(work.root, index);
    case Collective::kReduce:
      return at_root ? std::optional(Sum<T>(work.ranks, index)) : std::nullopt;
    case Collective::kGather:
      return at_root ? std::optional(Brought<T>(OwnerOf(index, work.ranks, work.elements), index))
                     : std::nullopt;
    case Collective::kScatter:
      return mine ? std::optional(Brought<T>(work.root, index)) : std::nullopt;
    default:
      return std::nullopt;
  }
}

// An all-gather, a gather, a broadcast and a scatter know only what their rank contributes.
bool Contributes(const Work& work, Rank rank, std::int64_t index) {
  switch (work.collective) {
    case Collective::kAllGather:
    case Collective::kGather:
      return BlockOf(rank, work.ranks, work.elements).Has(index);
    case Collective::kBroadcast:
    case Collective::kScatter:
      return rank == work.root;
    default:
      return true;
  }
}

template <typename T>
Side<T> SideOf(const Work& work, Rank rank) {
  if (IsExchange(work.collective)) {
    return ExchangeSideOf<T>(work, rank);
  }
  Side<T> side;
  const std::int64_t elements = work.collective == Collective::kBarrier ? 0 : work.elements;
  for (std::int64_t i = 0; i < elements; ++i) {
    side.input.push_back(Contributes(work, rank, i) ? Brought<T>(rank, i)
                                                    : static_cast<T>(kUntouched));
    side.expected.push_back(ExpectedAt<T>(work, rank, i));
  }
  return side;
}

template <typename T>
void ExpectResult(const Work& work, const Side<T>& side) {
  const std::vector<T>& result = IsExchange(work.collective) ? side.output : side.input;
  ASSERT_EQ(result.size(), side.expected.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (side.expected[i] && result[i] != *side.expected[i]) {
      FAIL() << "element " << i << " is " << result[i] << ", not " << *side.expected[i];
    }
  }
}

template <typename T>
void RunOnce(const CatalogEntry& entry, const BuildOptions& build, std::int64_t elements,
             const ClusterOptions& options) {
  const int ranks = build.group_size;
  const bool equal_blocks = entry.collective == Collective::kAllToAll;
  const Work work{.collective = entry.collective,
                  .ranks = ranks,
                  .root = build.root,
                  .elements = equal_blocks ? elements / ranks * ranks : elements};
  SCOPED_TRACE(
      absl::StrFormat("%s %s, %d ranks, root %d, %d chunks a rank, %d elements of %d bytes",
                      entry.name, NameOf(entry.collective), ranks, build.root,
                      build.chunks_per_rank, work.elements, sizeof(T)));
  const Schedule schedule = *entry.build(build);
  transport::BufferPool landings(1 << 20);
  std::deque<ProcessGroup> groups;
  std::deque<RankPlan> plans;
  std::vector<Side<T>> sides;
  std::vector<Ending> endings(static_cast<std::size_t>(ranks));
  CollectiveCluster cluster(options);
  for (Rank rank = 0; rank < ranks; ++rank) {
    groups.push_back(cluster.World(rank));
    plans.push_back(MakeRankPlan(schedule, rank));
    sides.push_back(SideOf<T>(work, rank));
  }
  for (Rank rank = 0; rank < ranks; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    Execute(cluster.Deps(rank), groups[r],
            {.plan = plans[r],
             .landings = landings,
             .buffers = {.input = compute::HostView(std::span<T>(sides[r].input)),
                         .output = compute::HostView(std::span<T>(sides[r].output)),
                         .input_counts = sides[r].input_counts,
                         .output_counts = sides[r].output_counts},
             .sequence = 1,
             .deadline = std::chrono::seconds(30)},
            nullptr, endings[r].On(cluster.loop()));
  }
  cluster.loop().Run();
  for (Rank rank = 0; rank < ranks; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    ASSERT_EQ(endings[r].times, 1) << "rank " << rank;
    ASSERT_TRUE(endings[r].status->ok()) << *endings[r].status;
    ExpectResult(work, sides[r]);
  }
  EXPECT_EQ(cluster.trace().spans.size(), static_cast<std::size_t>(ranks));
}

class ExecutorMatrix : public ::testing::TestWithParam<int> {};

TEST_P(ExecutorMatrix, EveryAlgorithmGivesTheSequentialResult) {
  const int ranks = GetParam();
  const ClusterOptions options{.ranks = ranks};
  for (const CatalogEntry& entry : Catalog()) {
    const BuildOptions one{.group_size = ranks};
    const BuildOptions three{.group_size = ranks, .chunks_per_rank = 3, .root = ranks - 1};
    for (const std::int64_t elements : std::set<std::int64_t>{0, 1, ranks - 1, ranks, 1009}) {
      RunOnce<float>(entry, one, elements, options);
      RunOnce<std::int32_t>(entry, three, elements, options);
    }
    RunOnce<float>(entry, three, 65'536, options);
  }
}

// Jitter reorders what happens on different pairs of ranks; losses delay single messages.
TEST_P(ExecutorMatrix, TheOrderOfEventsDoesNotMatter) {
  const int ranks = GetParam();
  for (const CatalogEntry& entry : Catalog()) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      RunOnce<float>(entry, {.group_size = ranks, .chunks_per_rank = 3, .root = ranks / 2}, 1009,
                     {.ranks = ranks,
                      .port = fabric::LinkSpec{.alpha = std::chrono::microseconds(5),
                                               .bandwidth = {1e9},
                                               .jitter = std::chrono::microseconds(200),
                                               .loss_probability = 0.05,
                                               .retransmit_after = std::chrono::milliseconds(1)},
                      .seed = seed * 100,
                      .reduction_seconds_per_byte = 1e-8});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(GroupSizes, ExecutorMatrix,
                         ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16));

}  // namespace
}  // namespace ranklab::collectives
