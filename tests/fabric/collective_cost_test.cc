// Values that were computed apart from this code (S = 64 MB, alpha = 5 us, beta = 1e-10 s/B, gamma
// = 2e-11 s/B, M1). tests/sim compares every form with a played schedule.
#include "fabric/collective_cost.h"

#include <gtest/gtest.h>

namespace ranklab::fabric {
namespace {

constexpr double kSize = 64e6;
const CostModel kModel{.alpha = 5e-6, .beta = 1e-10, .gamma = 2e-11, .alpha_holds_ports = true};

TEST(CollectiveCost, MatchesTheCheckValues) {
  CostModel two_ports = kModel;
  two_ports.ports = 2;
  const CollectiveWork six{.ranks = 6, .size = kSize};
  const CollectiveWork eight{.ranks = 8, .size = kSize};
  EXPECT_NEAR(*RingAllReduceCost(kModel, six), 0.01178333333, 1e-11);
  EXPECT_NEAR(*RingReduceScatterCost(kModel, eight), 0.006755, 1e-12);
  EXPECT_NEAR(*BidirectionalRingCost(two_ports, six), 0.005916666667, 1e-12);
  EXPECT_NEAR(*RecursiveDoublingCost(kModel, six), 0.02946, 1e-12);
  EXPECT_NEAR(*RecursiveDoublingCost(kModel, eight), 0.023055, 1e-12);
  EXPECT_NEAR(*RabenseifnerCost(kModel, six), 0.024035, 1e-12);
  EXPECT_NEAR(*RabenseifnerCost(kModel, eight), 0.01235, 1e-12);
  EXPECT_NEAR(*BinomialAllReduceCost(kModel, eight), 0.04227, 1e-12);
  EXPECT_NEAR(*PairwiseAllToAllCost(kModel, six), 0.005358333333, 1e-12);
  EXPECT_NEAR(*ChainBroadcastCost(kModel, {.ranks = 8, .size = kSize, .pieces = 16}), 0.00891,
              1e-12);
  EXPECT_NEAR(*HierarchicalCost(kModel, {.ranks = 32, .size = kSize, .ranks_per_node = 8}), 0.01374,
              1e-12);
}

// 8 nodes' links of 200 GB/s inside, 25 GB/s between.
TEST(CollectiveCost, OnlyTheHierarchicalFormKnowsTwoClassesOfLinks) {
  const CostModel model{.alpha = 2e-6,
                        .beta = 1 / 200e9,
                        .gamma = 1e-12,
                        .alpha_holds_ports = true,
                        .ranks_per_node = 8,
                        .alpha_between = 8e-6,
                        .beta_between = 1 / 25e9};
  const CollectiveWork work{.ranks = 32, .size = 8e6, .ranks_per_node = 8};
  EXPECT_NEAR(*HierarchicalCost(model, work), 0.00021375, 1e-12);
  EXPECT_FALSE(RingAllReduceCost(model, work).has_value());
  CollectiveWork others = work;
  others.ranks_per_node = 4;
  EXPECT_FALSE(HierarchicalCost(model, others).has_value());
}

TEST(CollectiveCost, OneRankHasNothingToDo) {
  const CollectiveWork one{.ranks = 1, .size = kSize};
  for (const auto cost :
       {RingAllReduceCost, BidirectionalRingCost, MultiChannelRingCost, RecursiveDoublingCost,
        RabenseifnerCost, BinomialAllReduceCost, HierarchicalCost, BruckAllGatherCost,
        BruckAllToAllCost, PairwiseAllToAllCost, BinomialGatherCost, BinomialScatterCost,
        ChainBroadcastCost, DisseminationBarrierCost}) {
    EXPECT_EQ(cost(kModel, one), Cost(0.0));
  }
}

// gamma = 0: recursive doubling beats Rabenseifner below 4, 2.4, 1.88 and 1.49 alpha / beta.
TEST(CollectiveCost, CrossesOverWhereTheAlgebraSays) {
  CostModel model = kModel;
  model.gamma = 0;
  const double unit = model.alpha / model.beta;
  for (const auto& [ranks, cross] :
       {std::pair{4, 4.0}, {8, 2.4}, {16, 1.882352941}, {64, 1.488372093}}) {
    const auto doubling_is_faster = [&](double size) {
      const CollectiveWork work{.ranks = ranks, .size = size};
      return *RecursiveDoublingCost(model, work) < *RabenseifnerCost(model, work);
    };
    EXPECT_TRUE(doubling_is_faster(0.999 * cross * unit)) << ranks;
    EXPECT_FALSE(doubling_is_faster(1.001 * cross * unit)) << ranks;
  }
}

}  // namespace
}  // namespace ranklab::fabric
