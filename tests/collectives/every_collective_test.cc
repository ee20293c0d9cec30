// What the communicator offers beside all-reduce, and each algorithm's time.
#include <deque>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/communicator.h"
#include "collectives/schedule/catalog.h"
#include "core/status.h"
#include "tests/collectives/collective_cluster.h"

namespace ranklab::collectives {
namespace {

using std::chrono::microseconds;
using ::testing::HasSubstr;

// The same six workers, every collective in every group at once.
TEST(Communicator, EveryCollectiveRunsInSubGroupsAtOnce) {
  CollectiveCluster cluster({.ranks = 6});
  const std::vector<std::vector<Rank>> groups = {{0, 1, 2, 3, 4, 5}, {4, 0, 2}, {1, 3, 5}, {5, 0}};
  std::vector<std::unique_ptr<Communicator>> communicators;
  std::deque<std::vector<float>> buffers;
  std::deque<Ending> endings;
  struct Check {
    std::size_t buffer = 0;
    std::vector<float> expected;
  };
  std::vector<Check> checks;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto size = static_cast<Rank>(groups[g].size());
    const Rank root = size - 1;
    const auto sum = static_cast<float>(size * (size - 1) / 2);
    for (Rank rank = 0; rank < size; ++rank) {
      communicators.push_back(cluster.Join(groups[g][static_cast<std::size_t>(rank)],
                                           {.id = static_cast<std::uint32_t>(g),
                                            .members = groups[g],
                                            .my_rank = rank,
                                            .generation = 7},
                                           {.algorithm = "recursive_doubling"}));
      Communicator& group = *communicators.back();
      const auto done = [&] { return endings.emplace_back().On(cluster.loop()); };
      // A buffer of one element a rank, all of them the rank; what must be in it.
      const auto buffer = [&](std::vector<float> expected) {
        buffers.emplace_back(static_cast<std::size_t>(size), static_cast<float>(rank));
        checks.push_back({buffers.size() - 1, std::move(expected)});
        return compute::HostView(std::span(buffers.back()));
      };
      std::vector<float> ranks(static_cast<std::size_t>(size));
      std::iota(ranks.begin(), ranks.end(), 0.0F);
      const std::vector<float> sums(ranks.size(), sum);
      const std::vector<float> roots(ranks.size(), static_cast<float>(root));
      group.AllReduce(buffer(sums), compute::ReduceOp::kSum, {}, done());
      group.AllGather(buffer(ranks), {}, done());
      group.Broadcast(buffer(roots), root, {}, done());
      group.Reduce(buffer(rank == root ? sums : std::vector<float>()), compute::ReduceOp::kSum,
                   root, {}, done());
      group.Gather(buffer(rank == root ? ranks : std::vector<float>()), root, {}, done());
      group.ReduceScatter(buffer({}), compute::ReduceOp::kSum, {}, done());
      group.Scatter(buffer({}), root, {}, done());
      group.Barrier({}, done());
      const compute::TensorView sent = buffer(std::vector<float>(ranks.size(), float(rank)));
      const compute::TensorView received = buffer(ranks);
      group.AllToAll(sent, received, {}, done());
    }
  }
  cluster.loop().Run();
  for (const Ending& ending : endings) {
    ASSERT_TRUE(ending.ok());
  }
  for (const Check& check : checks) {
    if (!check.expected.empty()) {
      EXPECT_EQ(buffers[check.buffer], check.expected);
    }
  }
}

TEST(Communicator, ABarrierEndsForNobodyBeforeTheLastHasCome) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    CollectiveCluster cluster({.ranks = ranks});
    const auto communicators = cluster.JoinWorld();
    std::vector<Ending> endings(static_cast<std::size_t>(ranks));
    for (std::size_t r = 0; r < endings.size(); ++r) {
      cluster.loop().RunAt(microseconds(100 * r), [&, r] {
        communicators[r]->Barrier({}, endings[r].On(cluster.loop()));
      });
    }
    cluster.loop().Run();
    for (const Ending& ending : endings) {
      ASSERT_TRUE(ending.ok());
      EXPECT_EQ(ending.at, microseconds(100 * (ranks - 1)));
    }
  }
}

// Live messages do not wait to be wanted: the eager model M2. Every algorithm that has a closed
// form for it takes that time on shaped wires.
TEST(Communicator, EveryAllReduceTakesTheTimeOfItsClosedForm) {
  const fabric::LinkSpec port{.alpha = microseconds(5), .bandwidth = {1e9}};
  int compared = 0;
  for (const CatalogEntry& entry : Catalog()) {
    if (entry.collective != Collective::kAllReduce) {
      continue;
    }
    for (const int ranks : {2, 3, 4, 6, 8}) {
      for (const std::int64_t elements : {48, 48 * 1000, 48 * 20'000}) {
        const auto predicted = PredictSeconds(entry, fabric::LiveCostModel(port),
                                              {.group_size = ranks}, 4.0 * double(elements));
        if (!predicted) {
          continue;
        }
        ++compared;
        CollectiveCluster cluster({.ranks = ranks, .port = port});
        const auto communicators = cluster.JoinWorld({.algorithm = std::string(entry.name)});
        std::vector<Ending> endings(static_cast<std::size_t>(ranks));
        for (std::size_t r = 0; r < endings.size(); ++r) {  // sizes without bytes
          communicators[r]->AllReduce(
              {nullptr, compute::DType::kFloat32, {elements, 1, 1, 1}, nullptr},
              compute::ReduceOp::kSum, {}, endings[r].On(cluster.loop()));
        }
        cluster.loop().Run();
        Nanos last{};
        for (const CollectiveSpan& span : cluster.trace().spans) {
          last = std::max(last, span.left - span.entered);
        }
        EXPECT_NEAR(static_cast<double>(last.count()) * 1e-9, *predicted, 1e-3 * *predicted)
            << entry.name << ", " << ranks << " ranks, " << elements << " elements";
      }
    }
  }
  EXPECT_GE(compared, 60);
}

TEST(Communicator, RefusesARootOutsideOfTheGroupAndWrongCounts) {
  CollectiveCluster cluster({.ranks = 2});
  const auto communicators = cluster.JoinWorld();
  std::vector<std::string> failures;
  communicators[0]->OnFailure(
      [&](const absl::Status& status) { failures.push_back(MessageOf(status)); });
  std::vector<float> buffer(4);
  const compute::TensorView view = compute::HostView(std::span(buffer));
  std::vector<Ending> endings(3);
  communicators[0]->Broadcast(view, 2, {}, endings[0].On(cluster.loop()));
  const std::vector<std::int64_t> counts = {1, 2};
  communicators[0]->AllToAllV(
      {.input = view, .output = view, .input_counts = counts, .output_counts = counts}, {},
      endings[1].On(cluster.loop()));
  std::vector<float> odd(3);
  communicators[0]->AllToAll(compute::HostView(std::span(odd)), view, {},
                             endings[2].On(cluster.loop()));
  cluster.loop().Run();
  for (const Ending& ending : endings) {
    ASSERT_EQ(ending.times, 1);
    EXPECT_EQ(ending.status->code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(failures,
              ::testing::ElementsAre(HasSubstr("root 2 is none of the ranks 0 to 1"),
                                     HasSubstr("2 counts of the input blocks, 3 elements in all"),
                                     HasSubstr("cuts its input into 2 equal chunks; 3 elements")));
}

}  // namespace
}  // namespace ranklab::collectives
