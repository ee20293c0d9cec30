// The lean player against the executor that ships, in virtual time over shaped wires: the same
// instants for every rank.
#include <chrono>
#include <deque>

#include <gtest/gtest.h>

#include "collectives/executor.h"
#include "collectives/schedule/catalog.h"
#include "fabric/collective_cost.h"
#include "sim/schedule_player.h"
#include "tests/collectives/collective_cluster.h"

namespace ranklab::sim {
namespace {

using collectives::CatalogEntry;
using collectives::Collective;
using collectives::Schedule;

constexpr double kNanosecond = 1e-9;
const fabric::LinkSpec kPort{.alpha = std::chrono::microseconds(5), .bandwidth = {4e9}};

compute::TensorView SizeOnly(std::int64_t elements) {
  return {.data = nullptr, .shape = {elements, 1, 1, 1}};
}

// When each rank is done, in seconds. `elements`: of a chunk; each takes a whole nanosecond.
std::vector<double> Execute(const Schedule& schedule, std::int64_t elements) {
  collectives::CollectiveCluster cluster(
      {.ranks = schedule.group_size, .port = kPort, .eager_limit = Bytes{1} << 40});
  const std::vector<std::int64_t> counts(static_cast<std::size_t>(schedule.group_size), elements);
  std::deque<collectives::ProcessGroup> groups;
  std::deque<collectives::RankPlan> plans;
  std::deque<collectives::Ending> endings;
  transport::BufferPool landings(Bytes{1} << 30);
  for (Rank rank = 0; rank < schedule.group_size; ++rank) {
    groups.push_back(cluster.World(rank));
    plans.push_back(collectives::MakeRankPlan(schedule, rank));
    collectives::CallBuffers buffers{.input = SizeOnly(schedule.input_chunks * elements),
                                     .output = SizeOnly(schedule.output_chunks * elements)};
    if (schedule.collective == Collective::kAllToAllV) {
      buffers.input_counts = counts;
      buffers.output_counts = counts;
    }
    collectives::Execute(cluster.Deps(rank), groups.back(),
                         {.plan = plans.back(),
                          .landings = landings,
                          .buffers = buffers,
                          .deadline = std::chrono::hours(1)},
                         nullptr, endings.emplace_back().On(cluster.loop()));
  }
  cluster.loop().Run();
  std::vector<double> ends;
  for (const collectives::Ending& ending : endings) {
    EXPECT_TRUE(ending.ok()) << *ending.status;
    ends.push_back(std::chrono::duration<double>(ending.at).count());
  }
  return ends;
}

void Compare(const CatalogEntry& entry, int ranks, std::int64_t elements) {
  const Schedule schedule = *entry.build({.group_size = ranks});
  const double size =
      4.0 * static_cast<double>(elements) * std::max(schedule.input_chunks, schedule.output_chunks);
  const auto played = PlaySchedule(schedule, size, fabric::LiveCostModel(kPort));
  ASSERT_TRUE(played.ok()) << played.status();
  const std::vector<double> executed = Execute(schedule, elements);
  for (std::size_t rank = 0; rank < executed.size(); ++rank) {
    ASSERT_NEAR(played->rank_ends[rank], executed[rank], 1e-9 * executed[rank])
        << entry.name << " " << NameOf(entry.collective) << ", rank " << rank << " of " << ranks
        << ", " << elements << " elements a chunk";
  }
}

// Elements of a chunk.
class TwoPlayers : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(TwoPlayers, EndEveryRankAtTheSameInstant) {
  for (const CatalogEntry& entry : collectives::Catalog()) {
    for (const int ranks : {1, 2, 3, 5, 8, 13, 16, 32}) {
      Compare(entry, ranks, GetParam());
    }
  }
}
INSTANTIATE_TEST_SUITE_P(ElementsOfAChunk, TwoPlayers, ::testing::Values(1000, 50'000));

// The executor is slow: at most so many messages. Where messages reach a port at one instant the
// loop's order may be another one, which moves few ends: in a fold of 127 ranks, not here.
TEST(TwoPlayers, EndEveryRankAtTheSameInstantInLargeGroups) {
  constexpr std::int64_t kMostMessages = 40'000;
  for (const CatalogEntry& entry : collectives::Catalog()) {
    for (int ranks : {100, 256}) {
      while (PlaySchedule(*entry.build({.group_size = ranks}), 1, {})->messages > kMostMessages) {
        ranks /= 2;
      }
      EXPECT_GE(ranks, 50);
      Compare(entry, ranks, 1000);
    }
  }
}

}  // namespace
}  // namespace ranklab::sim
