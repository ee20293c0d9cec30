// One rank played for all that do the same: what the schedules promise, and that the times are
// those of all ranks played.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/schedule/catalog.h"
#include "core/random.h"
#include "core/status.h"
#include "sim/rank_classes.h"
#include "sim/schedule_player.h"

namespace ranklab::sim {
namespace {

using collectives::BuildNamed;
using collectives::BuildOptions;
using collectives::Catalog;
using collectives::CatalogEntry;
using collectives::Collective;
using collectives::Op;
using collectives::Schedule;
using ::testing::HasSubstr;

// Nothing, or the first difference between rank's list and rank 0's, translated.
std::string Difference(const Schedule& schedule, Rank rank) {
  const std::vector<Op> first = schedule.ops_of(0);
  const std::vector<Op> ops = schedule.ops_of(rank);
  if (first.size() != ops.size()) {
    return absl::StrFormat("%d ops instead of %d", ops.size(), first.size());
  }
  for (std::size_t i = 0; i < ops.size(); ++i) {
    std::vector<collectives::OpIndex> after = ops[i].after;
    std::vector<collectives::OpIndex> expected_after = first[i].after;
    std::sort(after.begin(), after.end());
    std::sort(expected_after.begin(), expected_after.end());
    const Rank peer =
        first[i].peer < 0 ? -1 : collectives::Translate(schedule.digits, rank, first[i].peer);
    if (ops[i].kind != first[i].kind || ops[i].count != first[i].count ||
        ops[i].channel != first[i].channel || ops[i].peer != peer || after != expected_after) {
      return absl::StrFormat("op %d: peer %d instead of %d, or another kind", i, ops[i].peer, peer);
    }
  }
  return "";
}

TEST(SchedulesWithSymmetry, KeepTheirPromise) {
  int promised = 0;
  for (const CatalogEntry& entry : Catalog()) {
    for (int ranks = 1; ranks <= 33; ++ranks) {
      for (const BuildOptions& options :
           {BuildOptions{.group_size = ranks},
            BuildOptions{.group_size = ranks, .chunks_per_rank = 3, .channels = 3}}) {
        const Schedule schedule = *entry.build(options);
        if (schedule.digits.empty()) {
          continue;
        }
        ++promised;
        int product = 1;
        for (const int digit : schedule.digits) {
          product *= digit;
        }
        ASSERT_EQ(product, ranks) << entry.name;
        for (Rank rank = 0; rank < ranks; ++rank) {
          ASSERT_EQ(Difference(schedule, rank), "") << entry.name << " " << NameOf(entry.collective)
                                                    << ", rank " << rank << " of " << ranks;
        }
      }
    }
  }
  EXPECT_GE(promised, 600);
}

// What a sample plays, and how it failed.
struct Sample {
  std::string name;
  Schedule schedule;
  double size = 0;
  fabric::CostModel model{};
  Disturbances disturbances{};
};

Disturbances DrawDisturbances(Random& random, int ranks) {
  Disturbances disturbances;
  const auto rank = [&] {
    return static_cast<Rank>(random.Below(static_cast<std::uint64_t>(ranks)));
  };
  const auto count = random.Below(3) == 0 ? 0 : random.Below(9);  // a third are not disturbed
  for (std::uint64_t i = 0; i < count; ++i) {
    const Rank at = rank();
    const Rank to = rank();
    const auto is_at = [&](const SlowRank& slow) { return slow.rank == at; };
    const auto is_link = [&](const SlowLink& slow) { return slow.from == at && slow.to == to; };
    if (random.Below(2) == 0) {
      if (std::none_of(disturbances.ranks.begin(), disturbances.ranks.end(), is_at)) {
        disturbances.ranks.push_back(
            {at, 1e-5 * static_cast<double>(random.Below(3)), random.Below(2) == 0 ? 1.0 : 2.5});
      }
    } else if (std::none_of(disturbances.links.begin(), disturbances.links.end(), is_link)) {
      disturbances.links.push_back({at, to, 2e-6, random.Below(2) == 0 ? 0.5 : 3.0});
    }
  }
  return disturbances;
}

Sample Draw(std::uint64_t seed) {
  Random random(seed);
  for (;;) {
    const CatalogEntry& entry = Catalog()[random.Below(Catalog().size())];
    const int ranks =
        random.Below(2) == 0 ? 1 << (1 + random.Below(8)) : 2 + static_cast<int>(random.Below(63));
    const int per_node = ranks % 4 == 0 && random.Below(2) == 0 ? 4 : 0;
    const BuildOptions options = {.group_size = ranks,
                                  .chunks_per_rank = 1 + static_cast<int>(random.Below(2)),
                                  .channels = 2,
                                  .ranks_per_node = per_node};
    Sample sample{
        .name = absl::StrFormat("%s %s over %d ranks", entry.name, NameOf(entry.collective), ranks),
        .schedule = *entry.build(options)};
    if (sample.schedule.digits.empty()) {
      continue;  // its ranks are all played, folded or not
    }
    sample.size = 1e6;
    sample.model = {.alpha = 5e-6,
                    .beta = 1e-10,
                    .gamma = random.Below(2) == 0 ? 0.0 : 3e-11,
                    .alpha_holds_ports = random.Below(2) == 0,
                    .eager = random.Below(2) == 0,
                    .ports = 1 + static_cast<int>(random.Below(2)),
                    .ranks_per_node = per_node,
                    .alpha_between = 9e-6,
                    .beta_between = 4e-10};
    sample.disturbances = DrawDisturbances(random, ranks);
    return sample;
  }
}

TEST(RanksAlike, FoldedTimesAreThoseOfAllRanksPlayed) {
  int folded_samples = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Sample sample = Draw(seed);
    const auto folded = PlaySchedule(sample.schedule, sample.size, sample.model,
                                     {.disturbances = sample.disturbances});
    const auto all = PlaySchedule(sample.schedule, sample.size, sample.model,
                                  {.disturbances = sample.disturbances, .fold = false});
    ASSERT_TRUE(folded.ok() && all.ok()) << folded.status() << all.status();
    EXPECT_EQ(all->ranks_played, sample.schedule.group_size);
    EXPECT_EQ(folded->messages, all->messages);
    folded_samples += folded->ranks_played < all->ranks_played ? 1 : 0;
    for (std::size_t rank = 0; rank < all->rank_ends.size(); ++rank) {
      ASSERT_NEAR(folded->rank_ends[rank], all->rank_ends[rank], 1e-9 * all->rank_ends[rank])
          << "seed " << seed << ", " << sample.name << ", rank " << rank;
    }
  }
  std::printf("%d of 200 samples were folded\n", folded_samples);
  EXPECT_GE(folded_samples, 50);
}

int RanksPlayed(const Schedule& schedule, const fabric::CostModel& model,
                const Disturbances& disturbances = {}) {
  const auto played = PlaySchedule(schedule, 1e6, model, {.disturbances = disturbances});
  EXPECT_TRUE(played.ok()) << played.status();
  return played.ok() ? played->ranks_played : 0;
}

TEST(RanksAlike, OneStandsForAllOfARing) {
  const Schedule ring = *BuildNamed("ring", Collective::kAllReduce, {.group_size = 131'072});
  const fabric::CostModel model{.alpha = 5e-7, .beta = 2e-11, .eager = true};
  const auto played = PlaySchedule(ring, 1e9, model);
  ASSERT_TRUE(played.ok()) << played.status();
  EXPECT_EQ(played->ranks_played, 1);
  EXPECT_EQ(played->messages, 2LL * 131'071 * 131'072);
  const double expected = 2 * 131'071.0 * (5e-7 + 1e9 / 131'072 * 2e-11);
  EXPECT_NEAR(played->ends, expected, 1e-9 * expected);
}

TEST(RanksAlike, NodesOfEightMakeEightKinds) {
  const fabric::CostModel model{.alpha = 5e-7,
                                .beta = 2e-11,
                                .eager = true,
                                .ranks_per_node = 8,
                                .alpha_between = 5e-6,
                                .beta_between = 2e-10};
  EXPECT_EQ(RanksPlayed(*BuildNamed("ring", Collective::kAllReduce, {.group_size = 512}), model),
            8);
  EXPECT_EQ(RanksPlayed(*BuildNamed("hierarchical", Collective::kAllReduce,
                                    {.group_size = 512, .ranks_per_node = 8}),
                        model),
            1);
}

// One step after the other it reaches twice as many.
TEST(RanksAlike, ALateRankMakesAKindForEachStepOfADoubling) {
  const Schedule schedule =
      *BuildNamed("recursive_doubling", Collective::kAllReduce, {.group_size = 4096});
  const int played = RanksPlayed(schedule, {.alpha = 5e-6, .beta = 1e-10, .eager = true},
                                 {.ranks = {{.rank = 77, .late = 1e-3}}, .links = {}});
  EXPECT_GT(played, 1);
  EXPECT_LE(played, 4096);
}

TEST(RanksAlike, FoldingSaysWhyItGivesUp) {
  const fabric::CostModel model{.alpha = 5e-6, .beta = 1e-10, .eager = true};
  const auto late =
      PlaySchedule(*BuildNamed("ring", Collective::kAllReduce, {.group_size = 64}), 1e6, model,
                   {.disturbances = {.ranks = {{.rank = 3, .late = 1e-3}}, .links = {}}});
  ASSERT_TRUE(late.ok());
  EXPECT_EQ(late->ranks_played, 64);
  EXPECT_THAT(late->not_folded, HasSubstr("reaches the ranks at different times"));
  const auto tree =
      PlaySchedule(*BuildNamed("binomial", Collective::kAllReduce, {.group_size = 64}), 1e6, model);
  ASSERT_TRUE(tree.ok());
  EXPECT_THAT(tree->not_folded, HasSubstr("each has a list of its own"));
  const auto refused = PlaySchedule(*BuildNamed("ring", Collective::kAllReduce, {.group_size = 64}),
                                    1e6, model, {.fold = false, .most_ops = 1000});
  EXPECT_THAT(MessageOf(refused.status()), HasSubstr("16128 ops to be played, at most 1000"));
}

TEST(RanksAlike, DisturbancesMustNameRanksAndMakeSense) {
  const Schedule ring = *BuildNamed("ring", Collective::kAllReduce, {.group_size = 4});
  const auto message = [&](const Disturbances& disturbances) {
    return MessageOf(PlaySchedule(ring, 1e6, {}, {.disturbances = disturbances}).status());
  };
  EXPECT_THAT(message({.ranks = {{.rank = 4}}, .links = {}}), HasSubstr("slow rank 4"));
  EXPECT_THAT(message({.ranks = {{.rank = 0, .late = -1}}, .links = {}}), HasSubstr("-1 s late"));
  EXPECT_THAT(message({.ranks = {}, .links = {{.from = 0, .to = -1}}}), HasSubstr("from 0 to -1"));
  EXPECT_THAT(message({.ranks = {}, .links = {{.from = 0, .to = 1, .latency = 0, .factor = 0}}}),
              HasSubstr("factor 0"));
}

}  // namespace
}  // namespace ranklab::sim
