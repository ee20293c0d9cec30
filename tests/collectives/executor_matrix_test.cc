// Every algorithm of the catalog, run on messages, against the sequential result.
#include <algorithm>
#include <deque>
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
std::vector<T> SequentialSum(int ranks, std::int64_t elements) {
  std::vector<T> sum(static_cast<std::size_t>(elements));
  for (std::int64_t i = 0; i < elements; ++i) {
    for (Rank rank = 0; rank < ranks; ++rank) {
      sum[static_cast<std::size_t>(i)] += Brought<T>(rank, i);
    }
  }
  return sum;
}

constexpr std::int64_t kUntouched = 99'999;

struct Block {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
Block BlockOf(Rank rank, int ranks, std::int64_t elements) {
  return {elements * rank / ranks, elements * (rank + 1) / ranks};
}

// The buffer that a rank enters with; an all-gather knows only its own block.
template <typename T>
std::vector<T> BufferOf(Collective collective, Rank rank, int ranks, std::int64_t elements) {
  std::vector<T> buffer;
  const Block mine = BlockOf(rank, ranks, elements);
  for (std::int64_t i = 0; i < elements; ++i) {
    const bool known = collective != Collective::kAllGather || (i >= mine.begin && i < mine.end);
    buffer.push_back(known ? Brought<T>(rank, i) : static_cast<T>(kUntouched));
  }
  return buffer;
}

template <typename T>
void ExpectResult(Collective collective, Rank rank, int ranks, const std::vector<T>& sum,
                  const std::vector<T>& buffer) {
  const auto elements = static_cast<std::int64_t>(buffer.size());
  if (collective == Collective::kAllGather) {
    for (Rank owner = 0; owner < ranks; ++owner) {
      const Block block = BlockOf(owner, ranks, elements);
      for (std::int64_t i = block.begin; i < block.end; ++i) {
        if (buffer[static_cast<std::size_t>(i)] != Brought<T>(owner, i)) {
          FAIL() << "element " << i << " of rank " << owner << " is "
                 << buffer[static_cast<std::size_t>(i)];
        }
      }
    }
    return;
  }
  const Block block =
      collective == Collective::kAllReduce ? Block{0, elements} : BlockOf(rank, ranks, elements);
  for (std::int64_t i = block.begin; i < block.end; ++i) {
    if (buffer[static_cast<std::size_t>(i)] != sum[static_cast<std::size_t>(i)]) {
      FAIL() << "element " << i << " is " << buffer[static_cast<std::size_t>(i)] << ", not "
             << sum[static_cast<std::size_t>(i)];
    }
  }
}

template <typename T>
void RunOnce(const CatalogEntry& entry, int ranks, int chunks_per_rank, std::int64_t elements,
             const ClusterOptions& options) {
  SCOPED_TRACE(absl::StrFormat("%s %s, %d ranks, %d chunks a rank, %d elements of %d bytes",
                               entry.name, NameOf(entry.collective), ranks, chunks_per_rank,
                               elements, sizeof(T)));
  const Schedule schedule = *entry.build({.group_size = ranks, .chunks_per_rank = chunks_per_rank});
  transport::BufferPool landings(1 << 20);
  std::deque<ProcessGroup> groups;
  std::deque<RankPlan> plans;
  std::vector<std::vector<T>> buffers;
  std::vector<Ending> endings(static_cast<std::size_t>(ranks));
  CollectiveCluster cluster(options);
  for (Rank rank = 0; rank < ranks; ++rank) {
    groups.push_back(cluster.World(rank));
    plans.push_back(MakeRankPlan(schedule, rank));
    buffers.push_back(BufferOf<T>(entry.collective, rank, ranks, elements));
  }
  for (Rank rank = 0; rank < ranks; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    Execute(cluster.Deps(rank), groups[r],
            {.plan = plans[r],
             .landings = landings,
             .input = compute::HostView(std::span<T>(buffers[r])),
             .output = {},
             .sequence = 1,
             .deadline = std::chrono::seconds(30)},
            nullptr, endings[r].On(cluster.loop()));
  }
  cluster.loop().Run();
  const std::vector<T> sum = SequentialSum<T>(ranks, elements);
  for (Rank rank = 0; rank < ranks; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    ASSERT_EQ(endings[r].times, 1) << "rank " << rank;
    ASSERT_TRUE(endings[r].status->ok()) << *endings[r].status;
    ExpectResult(entry.collective, rank, ranks, sum, buffers[r]);
  }
  EXPECT_EQ(cluster.trace().spans.size(), static_cast<std::size_t>(ranks));
}

class ExecutorMatrix : public ::testing::TestWithParam<int> {};

TEST_P(ExecutorMatrix, EveryAlgorithmGivesTheSequentialResult) {
  const int ranks = GetParam();
  const ClusterOptions options{.ranks = ranks};
  for (const CatalogEntry& entry : Catalog()) {
    for (const std::int64_t elements : std::set<std::int64_t>{0, 1, ranks - 1, ranks, 1009}) {
      RunOnce<float>(entry, ranks, 1, elements, options);
      RunOnce<std::int32_t>(entry, ranks, 1, elements, options);
      RunOnce<float>(entry, ranks, 3, elements, options);
    }
    RunOnce<float>(entry, ranks, 1, 65'536, options);
    RunOnce<std::int32_t>(entry, ranks, 2, 65'536, options);
  }
}

// Jitter reorders what happens on different pairs of ranks; losses delay single messages.
TEST_P(ExecutorMatrix, TheOrderOfEventsDoesNotMatter) {
  const int ranks = GetParam();
  for (const CatalogEntry& entry : Catalog()) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      RunOnce<float>(entry, ranks, 3, 1009,
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

INSTANTIATE_TEST_SUITE_P(GroupSizes, ExecutorMatrix, ::testing::Values(1, 2, 3, 4, 5, 7, 8, 9, 16));

}  // namespace
}  // namespace ranklab::collectives
