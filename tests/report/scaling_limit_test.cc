#include "report/scaling_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ranklab::report {
namespace {

using experiment::CellSummary;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<CellSummary> Curve(const std::string& exchange, double latency_share,
                               const std::vector<std::pair<int, double>>& points) {
  std::vector<CellSummary> cells;
  for (const auto& [workers, efficiency] : points) {
    cells.push_back({.part = "wide",
                     .exchange = exchange,
                     .fabric = "nvlink4",
                     .workers = workers,
                     .servers = exchange == "ps" ? 2 : 0,
                     .efficiency = efficiency,
                     .latency_share = latency_share});
  }
  return cells;
}

TEST(ScalingLimit, SaysUpToWhereHalfOfTheIdealIsKeptAndWhatTakesTheRest) {
  EXPECT_THAT(
      DescribeScalingLimits(
          "wide", Curve("ring", 0.91, {{1, 1}, {2, 0.9}, {4, 0.8}, {16, 0.6}, {64, 0.3}})),
      ElementsAre("wide: ring on nvlink4 keeps half of the ideal up to 16 workers; with 64 it has "
                  "0.30 of it: 91 % of its exchange is the latency of messages that wait for each "
                  "other, which more bandwidth does not take away."));
  EXPECT_THAT(
      DescribeScalingLimits(
          "wide", Curve("ps", 0.02, {{1, 0.45}, {2, 0.4}, {4, 0.3}, {16, 0.2}, {64, 0.1}})),
      ElementsAre("wide: ps with 2 servers on nvlink4 is below half of the ideal from the start; "
                  "with 1 it has 0.45 of it: 98 % of its exchange is bandwidth, of the servers' "
                  "ports, which carry what every worker sends."));
}

TEST(ScalingLimit, SaysHowMuchIsKeptWhereNothingIsLost) {
  EXPECT_THAT(
      DescribeScalingLimits(
          "wide", Curve("rabenseifner", 0.5, {{1, 1}, {2, 1}, {4, 0.9}, {16, 0.9}, {64, 0.8}})),
      ElementsAre("wide: rabenseifner on nvlink4 keeps an efficiency of 0.80 with 64 "
                  "workers."));
}

TEST(ScalingLimit, NeedsACurve) {
  EXPECT_THAT(DescribeScalingLimits("wide", Curve("ring", 0.9, {{1, 1}, {2, 0.4}, {4, 0.2}})),
              IsEmpty());
  EXPECT_THAT(DescribeScalingLimits(
                  "other", Curve("ring", 0.9, {{1, 1}, {2, 1}, {4, 1}, {16, 1}, {64, 0.1}})),
              IsEmpty());
}

}  // namespace
}  // namespace ranklab::report
