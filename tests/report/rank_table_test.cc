#include "report/rank_table.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ranklab::report {
namespace {

using experiment::CellSummary;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

CellSummary Mlp() {
  return {.part = "scale",
          .exchange = "ring",
          .fabric = "nvlink4",
          .workers = 2,
          .kind = experiment::FigureKind::kShaped,
          .work = {.model_flops = 60, .formula = "6 N FLOPs a sample, N = 10", .peak = "A100"},
          .breakdown = {{.rank = 0,
                         .input = 0.001,
                         .forward = 0.002,
                         .backward = 0.004,
                         .exposed = 0.001,
                         .optimizer = 0.001,
                         .other = 0.001,
                         .hidden = 0.0005,
                         .samples_per_second = 800,
                         .mfu = 0.25,
                         .hfu = 0.5}}};
}

TEST(RankTable, ARowIsWhereTheStepWent) {
  const Table table = BuildRankTable(std::vector<CellSummary>{Mlp()});
  EXPECT_THAT(table.columns, ElementsAre("part", "cell", "rank", "samples/s", "step", "compute",
                                         "exposed", "input", "idle", "hidden", "MFU", "HFU"));
  ASSERT_THAT(table.rows, SizeIs(1));
  EXPECT_THAT(table.rows[0],
              ElementsAre("scale", "ring, nvlink4, 2 workers", "0", "800", "10.0 ms", "70.0 %",
                          "10.0 %", "10.0 %", "10.0 %", "5.0 %", "25.0 %", "50.0 %"));
  ASSERT_THAT(table.notes, SizeIs(2));
  EXPECT_THAT(table.notes[1], AllOf(HasSubstr("shaped"), HasSubstr("N = 10"), HasSubstr("A100")));
}

TEST(RankTable, TokensAreCountedWhereSamplesAreSequences) {
  CellSummary gpt = Mlp();
  gpt.work.tokens = 64;
  const Table table = BuildRankTable(std::vector<CellSummary>{gpt, Mlp()});
  EXPECT_EQ(table.columns[4], "tokens/s");
  EXPECT_EQ(table.rows[0][4], "51,200");
  EXPECT_EQ(table.rows[1][4], "-");
}

TEST(RankTable, WhatIsNotKnownIsADash) {
  CellSummary cell = Mlp();
  cell.breakdown[0].hidden = cell.breakdown[0].mfu = cell.breakdown[0].hfu = kUnknown;
  const Table table = BuildRankTable(std::vector<CellSummary>{cell});
  EXPECT_EQ(table.rows[0].back(), "-");
  EXPECT_EQ(table.rows[0][9], "-");
  EXPECT_THAT(table.notes, SizeIs(1)) << "no peak is named that nothing was held against";
}

TEST(RankTable, ACellWithoutStepsHasNoRows) {
  CellSummary cell = Mlp();
  cell.breakdown = {{.rank = 0}};
  EXPECT_THAT(BuildRankTable(std::vector<CellSummary>{cell}).rows, SizeIs(0));
}

}  // namespace
}  // namespace ranklab::report
