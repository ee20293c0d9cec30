#include "sim/schedule_player.h"

#include <array>
#include <chrono>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/schedule/catalog.h"
#include "core/status.h"

namespace ranklab::sim {
namespace {

using collectives::BuildNamed;
using collectives::BuildOptions;
using collectives::Catalog;
using collectives::CatalogEntry;
using collectives::Collective;
using collectives::PredictSeconds;
using collectives::Schedule;
using fabric::CostModel;

constexpr double kAlpha = 5e-6;
constexpr double kBeta = 1e-10;
constexpr double kGamma = 2e-11;
constexpr std::array<double, 3> kSizes = {4096, 1e6, 64e6};

double Play(const Schedule& schedule, double size, const CostModel& model) {
  const auto played = PlaySchedule(schedule, size, model);
  EXPECT_TRUE(played.ok()) << played.status();
  return played->ends;
}

double PlayNamed(std::string_view name, Collective collective, const BuildOptions& options,
                 double size, const CostModel& model) {
  return Play(*BuildNamed(name, collective, options), size, model);
}

struct NamedModel {
  std::string name;
  CostModel model;
};

std::vector<NamedModel> Models() {
  std::vector<NamedModel> models;
  for (const bool m1 : {true, false}) {
    for (const bool eager : {true, false}) {
      for (const double gamma : {0.0, kGamma}) {
        models.push_back(
            {std::string(m1 ? "M1" : "M2") + (eager ? "Eager" : "") + (gamma > 0 ? "Gamma" : ""),
             {.alpha = kAlpha,
              .beta = kBeta,
              .gamma = gamma,
              .alpha_holds_ports = m1,
              .eager = eager}});
      }
    }
  }
  models.push_back(
      {"M1TwoPorts",
       {.alpha = kAlpha, .beta = kBeta, .gamma = kGamma, .alpha_holds_ports = true, .ports = 2}});
  models.push_back({"M2TwoPorts", {.alpha = kAlpha, .beta = kBeta, .gamma = kGamma, .ports = 2}});
  return models;
}

class ClosedForms : public ::testing::TestWithParam<NamedModel> {};

TEST_P(ClosedForms, EqualThePlayedSchedule) {
  const CostModel& model = GetParam().model;
  int compared = 0;
  for (const CatalogEntry& entry : Catalog()) {
    for (int ranks = 1; ranks <= 17; ++ranks) {
      const Schedule schedule = *entry.build({.group_size = ranks});
      for (const double any_size : kSizes) {
        const double size = entry.collective == Collective::kBarrier ? 0 : any_size;
        const auto predicted = PredictSeconds(entry, model, {.group_size = ranks}, size);
        if (!predicted) {
          continue;
        }
        ++compared;
        EXPECT_NEAR(Play(schedule, size, model), *predicted, 1e-9 * *predicted)
            << entry.name << " " << NameOf(entry.collective) << " over " << ranks << " ranks, "
            << size << " bytes";
      }
    }
  }
  std::printf("%d comparisons\n", compared);
  EXPECT_GE(compared, 600);
}
INSTANTIATE_TEST_SUITE_P(Models, ClosedForms, ::testing::ValuesIn(Models()),
                         [](const auto& info) { return info.param.name; });

// Which algorithms have none, and for which groups: nothing else may lack one. M1 and M2, gamma 0.
TEST(ClosedForms, AreMissingOnlyWhereTheHeaderSaysSo) {
  for (const bool m1 : {true, false}) {
    const CostModel model{.alpha = kAlpha, .beta = kBeta, .alpha_holds_ports = m1};
    for (const CatalogEntry& entry : Catalog()) {
      for (int ranks = 1; ranks <= 17; ++ranks) {
        const bool power_of_two = (ranks & (ranks - 1)) == 0;
        const bool needs_two_ports = entry.name == "bidirectional_ring" && ranks > 1;
        const bool expected = entry.cost != nullptr && !needs_two_ports &&
                              (power_of_two || (entry.name != "recursive" &&
                                                (m1 || entry.collective != Collective::kGather)));
        EXPECT_EQ(PredictSeconds(entry, model, {.group_size = ranks}, 1e6).has_value(), expected)
            << entry.name << " " << NameOf(entry.collective) << " over " << ranks;
      }
    }
  }
}

TEST(ClosedForms, OfGatherAndScatterAreThoseOfRankZeroOnly) {
  const CostModel model{.alpha = kAlpha, .beta = kBeta, .alpha_holds_ports = true};
  for (const CatalogEntry& entry : Catalog()) {
    if (!HasRoot(entry.collective)) {
      continue;
    }
    const BuildOptions options = {.group_size = 6, .root = 4};
    const auto predicted = PredictSeconds(entry, model, options, 1e6);
    if (entry.collective == Collective::kGather || entry.collective == Collective::kScatter) {
      EXPECT_FALSE(predicted) << NameOf(entry.collective);
      continue;
    }
    ASSERT_TRUE(predicted) << entry.name << " " << NameOf(entry.collective);
    EXPECT_NEAR(Play(*entry.build(options), 1e6, model), *predicted, 1e-9 * *predicted)
        << entry.name << " " << NameOf(entry.collective);
  }
}

TEST(ClosedForms, HoldForPiecesChannelsAndNodes) {
  for (const bool m1 : {true, false}) {
    const CostModel model{.alpha = kAlpha, .beta = kBeta, .alpha_holds_ports = m1};
    for (const double size : kSizes) {
      for (const auto& [name, collective, options] :
           {std::tuple{"chain", Collective::kBroadcast,
                       BuildOptions{.group_size = 8, .chunks_per_rank = 2}},
            std::tuple{"multi_channel_ring", Collective::kAllReduce,
                       BuildOptions{.group_size = 7, .channels = 5}},
            std::tuple{"hierarchical", Collective::kAllReduce,
                       BuildOptions{.group_size = 12, .ranks_per_node = 2}}}) {
        const auto predicted =
            PredictSeconds(*collectives::FindAlgorithm(name, collective), model, options, size);
        ASSERT_TRUE(predicted.has_value()) << name;
        EXPECT_NEAR(PlayNamed(name, collective, options, size, model), *predicted,
                    1e-9 * *predicted)
            << name;
      }
    }
  }
}

// Values that were computed apart from this code, S = 64 MB, M1.
TEST(SchedulePlayer, MeetsTheCheckValues) {
  const CostModel model{.alpha = kAlpha, .beta = kBeta, .gamma = kGamma, .alpha_holds_ports = true};
  CostModel two_ports = model;
  two_ports.ports = 2;
  struct Value {
    std::string_view name;
    Collective collective;
    int ranks;
    double seconds;
  };
  for (const Value& value : std::initializer_list<Value>{
           {"ring", Collective::kAllReduce, 2, 0.00705},
           {"ring", Collective::kAllReduce, 6, 0.01178333333},
           {"ring", Collective::kAllReduce, 16, 0.01335},
           {"ring", Collective::kReduceScatter, 6, 0.006425},
           {"bidirectional_ring", Collective::kAllReduce, 6, 0.005916666667},
           {"bidirectional_ring", Collective::kAllReduce, 8, 0.00623},
           {"recursive_doubling", Collective::kAllReduce, 6, 0.02946},
           {"recursive_doubling", Collective::kAllReduce, 8, 0.023055},
           {"rabenseifner", Collective::kAllReduce, 6, 0.024035},
           {"rabenseifner", Collective::kAllReduce, 8, 0.01235},
           {"binomial", Collective::kAllReduce, 8, 0.04227},
           {"pairwise", Collective::kAllToAll, 6, 0.005358333333},
           {"pairwise", Collective::kAllToAll, 8, 0.005635}}) {
    const bool both_ways = value.name == "bidirectional_ring";
    EXPECT_NEAR(PlayNamed(value.name, value.collective, {.group_size = value.ranks}, 64e6,
                          both_ways ? two_ports : model),
                value.seconds, 1e-9 * value.seconds + 1e-12)
        << value.name << " over " << value.ranks;
  }
  EXPECT_NEAR(PlayNamed("chain", Collective::kBroadcast, {.group_size = 8, .chunks_per_rank = 2},
                        64e6, model),
              0.00891, 1e-11);
  EXPECT_NEAR(PlayNamed("hierarchical", Collective::kAllReduce,
                        {.group_size = 32, .ranks_per_node = 8}, 64e6, model),
              0.01374, 1e-11);
  const CostModel two_classes{.alpha = 2e-6,
                              .beta = 1 / 200e9,
                              .gamma = 1e-12,
                              .alpha_holds_ports = true,
                              .ranks_per_node = 8,
                              .alpha_between = 8e-6,
                              .beta_between = 1 / 25e9};
  EXPECT_NEAR(PlayNamed("hierarchical", Collective::kAllReduce,
                        {.group_size = 32, .ranks_per_node = 8}, 8e6, two_classes),
              0.00021375, 1e-13);
}

// h = floor(log2 P), k pieces a tree: 2 S beta and 2 h alpha from below for P > 4, and the
// empirical bound of a greedy order from above.
TEST(SchedulePlayer, KeepsADoubleTreeWithinItsBounds) {
  const CostModel model{.alpha = kAlpha, .beta = kBeta, .gamma = kGamma, .alpha_holds_ports = true};
  for (const int ranks : {5, 8, 15, 16, 31, 32}) {
    for (const int pieces : {1, 4, 32}) {
      for (const double size : kSizes) {
        const double time =
            PlayNamed("double_binary_tree", Collective::kAllReduce,
                      {.group_size = ranks, .chunks_per_rank = pieces}, size, model);
        const double height = std::floor(std::log2(ranks));
        EXPECT_GE(time, 2 * size * kBeta);
        EXPECT_GE(time, 2 * height * kAlpha);
        EXPECT_LE(time,
                  (4 * height + 6 * pieces) * (kAlpha + size / (2 * pieces) * (kBeta + kGamma)))
            << ranks << " ranks, " << pieces << " pieces, " << size << " bytes";
      }
    }
  }
}

// No all-reduce may beat ceil(log2 P) alpha, 2((P-1)/P) S beta and ((P-1)/P) S gamma; scaling all
// three constants scales the time; M2 is never slower than M1.
TEST(SchedulePlayer, KeepsTheLawsOfTheModel) {
  const CostModel m1{.alpha = kAlpha, .beta = kBeta, .gamma = kGamma, .alpha_holds_ports = true};
  CostModel m2 = m1;
  m2.alpha_holds_ports = false;
  const CostModel tripled{
      .alpha = 3 * kAlpha, .beta = 3 * kBeta, .gamma = 3 * kGamma, .alpha_holds_ports = true};
  for (const CatalogEntry& entry : Catalog()) {
    for (const int ranks : {2, 3, 5, 8, 12}) {
      SCOPED_TRACE(absl::StrFormat("%s %s, %d ranks", entry.name, NameOf(entry.collective), ranks));
      const Schedule schedule = *entry.build({.group_size = ranks});
      for (const double size : kSizes) {
        const double time = Play(schedule, size, m1);
        EXPECT_NEAR(Play(schedule, size, tripled), 3 * time, 1e-9 * time);
        if (PredictSeconds(entry, m2, {.group_size = ranks}, size)) {  // others may lose by chance
          EXPECT_LE(Play(schedule, size, m2), time * (1 + 1e-12));
        }
        if (entry.collective == Collective::kAllReduce) {
          const double share = (ranks - 1.0) / ranks * size;
          EXPECT_GE(time, std::ceil(std::log2(ranks)) * kAlpha);
          EXPECT_GE(time * (1 + 1e-12), 2 * share * kBeta);
          EXPECT_GE(time, share * kGamma);
        }
      }
    }
  }
}

TEST(SchedulePlayer, RefusesWhatDoesNotPairUpOrWaitsForEver) {
  using collectives::Op;
  using collectives::OpKind;
  Schedule schedule;
  schedule.group_size = 2;
  schedule.input_chunks = 1;
  schedule.ops_of = [](Rank rank) {
    return rank == 0 ? std::vector<Op>{{.kind = OpKind::kSend, .peer = 1}} : std::vector<Op>{};
  };
  EXPECT_THAT(MessageOf(PlaySchedule(schedule, 1, {}).status()),
              ::testing::HasSubstr("from rank 0 to rank 1 in channel 0"));
  schedule.ops_of = [](Rank rank) {
    return std::vector<Op>{{.kind = OpKind::kRecv, .peer = 1 - rank},
                           {.kind = OpKind::kSend, .peer = 1 - rank, .after = {0}}};
  };
  EXPECT_THAT(MessageOf(PlaySchedule(schedule, 1, {}).status()),
              ::testing::HasSubstr("4 of 4 ops wait for ever"));
}

// Printed, not asserted.
TEST(SchedulePlayer, SaysHowManyMessagesASecondItPlays) {
  const Schedule schedule = *BuildNamed("ring", Collective::kAllReduce, {.group_size = 512});
  const auto begin = std::chrono::steady_clock::now();
  const auto played = PlaySchedule(schedule, 64e6, {.alpha = kAlpha, .beta = kBeta});
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(played.ok());
  EXPECT_EQ(played->messages, 512 * 2 * 511);
  std::printf("%lld messages in %.3f s, the graph included\n",
              static_cast<long long>(played->messages), taken.count());
}

}  // namespace
}  // namespace ranklab::sim
