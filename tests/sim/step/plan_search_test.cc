#include "sim/step/plan_search.h"

#include <gtest/gtest.h>

#include "sim/step/bill.h"

namespace ranklab::sim {
namespace {

PlanRequest Request(const char* model, int devices, int batch) {
  return {.machine = FindMachine("a100", "dgx_a100_hdr").value(),
          .model = FindTransformer(model).value(),
          .devices = devices,
          .global_batch = batch};
}

TEST(PlanSearch, PruningLosesNothingOn64Devices) {
  for (const char* model : {"megatron-22b", "llama-13b"}) {
    PlanRequest request = Request(model, 64, 128);
    const PlanRanking pruned = SearchPlans(request).value();
    request.prune = false;
    const PlanRanking all = SearchPlans(request).value();
    EXPECT_LT(pruned.played, all.played / 2);
    EXPECT_EQ(all.played, all.legal - all.too_large);
    ASSERT_EQ(pruned.best.size(), all.best.size());
    ASSERT_EQ(all.best.size(), 10u);
    for (std::size_t i = 0; i < all.best.size(); ++i) {
      EXPECT_DOUBLE_EQ(pruned.best[i].time.seconds, all.best[i].time.seconds) << i;
    }
  }
}

TEST(PlanSearch, BestPlansFitAndAreLegalAndBelowThePeak) {
  const PlanRequest request = Request("gpt3-175b", 1024, 2048);
  const PlanRanking ranking = SearchPlans(request).value();
  ASSERT_EQ(ranking.best.size(), 10u);
  for (const Candidate& candidate : ranking.best) {
    EXPECT_TRUE(CheckPlan(request.model, candidate.plan).ok());
    EXPECT_EQ(candidate.plan.devices(), 1024);
    EXPECT_LE(candidate.memory.total(), 80e9);
    EXPECT_GT(candidate.time.mfu, 0.3);
    EXPECT_LT(candidate.time.hfu, 0.76);
  }
  EXPECT_LE(ranking.best.front().plan.tensor, 8);
  EXPECT_FALSE(ExplainBest(request, ranking).empty());
  EXPECT_NE(WhyItLost(ranking.best[0], ranking.best[9]).find("slower"), std::string::npos);
}

TEST(PlanSearch, SaysWhatIsMissingWhenNothingFits) {
  const PlanRanking ranking = SearchPlans(Request("gpt3-175b", 8, 8)).value();
  EXPECT_TRUE(ranking.best.empty());
  EXPECT_NE(ranking.smallest_misfit.find("needs"), std::string::npos);
  EXPECT_EQ(SearchPlans(Request("gpt3-175b", 7, 13)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Bill, EnergyAndCarbonEqualTheirCheckValues) {
  const Accelerator h100 = FindAccelerator("h100").value();
  const Tariff tariff = {.busy_share = 1, .host_watts = 0};
  const Bill bill = BillOf(h100, tariff, 8, 3600, 0);
  EXPECT_NEAR(bill.kwh, 6.72, 1e-9);  // 8 x 700 W x 1 h x PUE 1.2
  EXPECT_NEAR(bill.co2_kg, 3.192, 1e-9);
  EXPECT_NEAR(bill.dollars[1], 8 * 2.95, 1e-9);
}

}  // namespace
}  // namespace ranklab::sim
