// What stands in for groups too large to play, against what is played.
#include "sim/closed_form_cell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/seconds.h"
#include "tests/sim/lab_cells.h"

namespace ranklab::sim {
namespace {

using experiment::Cell;
using ::testing::HasSubstr;
using ::testing::Optional;

// Whole batches only: 8 workers x 64 samples x 5 steps.
constexpr std::int64_t kSamples = 8 * 64 * 5;

Cell RingOf(int workers) {
  Cell cell = SmallCell("nvlink4", workers);
  cell.spec.exchange.kind = experiment::CollectiveSpec{};
  return cell;
}

TEST(ClosedFormCell, IsThePlayedCellOfOneOfItsRanks) {
  const Cell cell = RingOf(8);
  ASSERT_EQ(WhyNoClosedForm(cell.spec, kSamples), std::nullopt);
  const auto computed = ClosedFormCell(cell, kSamples);
  ASSERT_TRUE(computed.ok()) << computed.status();
  const auto played = SimulateCell(cell, kSamples);
  ASSERT_TRUE(played.ok()) << played.status();
  EXPECT_EQ(computed->ranks_alike, 8);
  ASSERT_EQ(computed->steps.size(), 1U);
  ASSERT_EQ(computed->workers.size(), 1U);
  EXPECT_EQ(computed->workers[0].samples, played->run.workers[0].samples);
  ASSERT_EQ(computed->steps[0].size(), played->run.steps[0].size());
  for (std::size_t i = 0; i < computed->steps[0].size(); ++i) {
    const experiment::StepRecord& one = computed->steps[0][i];
    const experiment::StepRecord& other = played->run.steps[0][i];
    EXPECT_EQ(one.samples, other.samples);
    EXPECT_EQ(one.forward, other.forward);
    EXPECT_EQ(one.optimizer, other.optimizer);
    EXPECT_NEAR(SecondsOf(one.step_time) / SecondsOf(other.step_time), 1.0, 1e-4);
    EXPECT_NEAR(SecondsOf(one.exposed) / SecondsOf(other.exposed), 1.0, 1e-3);
  }
}

TEST(ClosedFormCell, AHundredThousandRanksTakeNoMoreThanEight) {
  Cell cell = RingOf(100'000);
  const std::int64_t samples = std::int64_t{100'000} * 64 * 5;
  ASSERT_EQ(WhyNoClosedForm(cell.spec, samples), std::nullopt);
  const auto computed = ClosedFormCell(cell, samples);
  ASSERT_TRUE(computed.ok()) << computed.status();
  EXPECT_EQ(computed->steps.size(), 1U);
  // 2 (p - 1) messages that wait for each other, 1.9 us each, in each of two buckets.
  EXPECT_GT(SecondsOf(computed->steps[0][0].exposed), 2 * 2 * 99'999 * 1.9e-6 * 0.99);
}

TEST(ClosedFormCell, WhatHasNoneIsNamed) {
  Cell cell = RingOf(8);
  EXPECT_THAT(WhyNoClosedForm(cell.spec, kSamples + 1), Optional(HasSubstr("cut short")));
  cell.spec.exchange.kind = experiment::CollectiveSpec{.algorithm = "double_binary_tree"};
  EXPECT_THAT(WhyNoClosedForm(cell.spec, kSamples), Optional(HasSubstr("double_binary_tree")));
  cell.spec.exchange.kind = experiment::ParameterServerSpec{};
  EXPECT_THAT(WhyNoClosedForm(cell.spec, kSamples), Optional(HasSubstr("parameter server")));
  cell = RingOf(8);
  cell.spec.scenario.injections.push_back({.effect = experiment::SlowPhase{}});
  EXPECT_THAT(WhyNoClosedForm(cell.spec, kSamples), Optional(HasSubstr("disturbed")));
}

}  // namespace
}  // namespace ranklab::sim
