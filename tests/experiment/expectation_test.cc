#include "experiment/expectation.h"

#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/status.h"

namespace ranklab::experiment {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ParsedExpectation Parse(std::string_view text) {
  auto parsed = ParseExpectation(text);
  EXPECT_TRUE(parsed.ok()) << MessageOf(parsed.status());
  return parsed.ok() ? *std::move(parsed) : ParsedExpectation{};
}

std::string Refusal(std::string_view text) {
  const auto parsed = ParseExpectation(text);
  EXPECT_FALSE(parsed.ok()) << text;
  return MessageOf(parsed.status());
}

TEST(Expectation, ReadsAClaimAboutAMetric) {
  const ParsedExpectation parsed = Parse("ratio<=1.15");
  EXPECT_EQ(parsed.claim, ParsedExpectation::Claim::kMetric);
  EXPECT_EQ(parsed.metric, "ratio");
  EXPECT_EQ(parsed.comparison, ParsedExpectation::Comparison::kAtMost);
  EXPECT_EQ(parsed.bound, 1.15);
  EXPECT_THAT(parsed.where, IsEmpty());
}

TEST(Expectation, ReadsWhere) {
  const ParsedExpectation parsed =
      Parse("efficiency > 0.8 where exchange = ps staleness 2 and cluster.workers != 4");
  ASSERT_THAT(parsed.where, SizeIs(2));
  EXPECT_EQ(parsed.where[0].path, "exchange");
  EXPECT_EQ(parsed.where[0].value, "ps staleness 2");
  EXPECT_TRUE(parsed.where[0].equal);
  EXPECT_EQ(parsed.where[1].path, "cluster.workers");
  EXPECT_FALSE(parsed.where[1].equal);
}

TEST(Expectation, ReadsHashesAndMeans) {
  EXPECT_EQ(Parse("param_hash equal across ranks").claim,
            ParsedExpectation::Claim::kHashAcrossRanks);
  EXPECT_EQ(Parse("param_hash equal across repeats where exchange = ring").claim,
            ParsedExpectation::Claim::kHashAcrossRepeats);
  EXPECT_EQ(Parse("mean accuracy > 0.95 over seed").mean_over, "seed");
}

TEST(Expectation, SaysWhatIsNotUnderstood) {
  EXPECT_EQ(Refusal("acuracy > 1"), "unknown metric \"acuracy\"; did you mean \"accuracy\"?");
  EXPECT_EQ(Refusal("accuracy is 1"), "\"is\" after accuracy; one of >, >=, <, <=, =");
  EXPECT_EQ(Refusal("accuracy > high"), "\"high\" after >; a number");
  EXPECT_EQ(Refusal("accuracy >"), "\"\" after >; a number");
  EXPECT_EQ(Refusal("mean accuracy > 0.9"), "a mean is \"mean accuracy > 0.9 over seed\"");
  EXPECT_EQ(Refusal("accuracy > 0.9 over seed"), "a mean is \"mean accuracy > 0.9 over seed\"");
  EXPECT_EQ(Refusal("samples_per_second > 2 times where exchange = ring"),
            "times is followed by an exchange as the table calls it: ps, ring");
  EXPECT_EQ(Refusal("mean accuracy > 1 times ps"), "a mean is \"mean accuracy > 1 over seed\"");
  EXPECT_EQ(Refusal("param_hash equal"),
            "param_hash can be equal across ranks or equal across repeats");
  EXPECT_EQ(Refusal("accuracy > 0.9 where exchange"),
            "where takes path = value or path != value, joined by and");
  EXPECT_EQ(Refusal("accuracy > 0.9 always").substr(0, 28), "\"always\" is not understood; ");
}

// Two exchanges at 1 and 4 workers and a row `none`, as Summarize would make them.
class ExpectationOutcomes : public ::testing::Test {
 protected:
  ExpectationOutcomes() {
    lab_.parts.push_back({.name = "learn"});
    for (const char* exchange : {"ps", "ring"}) {
      for (const int workers : {1, 4}) {
        lab_.parts[0].cells.push_back({});
        CellSummary cell{.part = "learn", .exchange = exchange, .fabric = "native"};
        cell.workers = workers;
        cell.accuracy = workers == 4 ? 0.96 : 0.94;
        cell.seed = 1;
        cell.repeats = 2;
        cell.hash_equal_across_ranks = true;
        cell.hash_equal_across_repeats = cell.exchange == "ring";
        cells_.push_back(cell);
      }
    }
    lab_.parts[0].cells.push_back({.baseline = true});
    cells_.push_back({.part = "learn", .baseline = true, .exchange = "none"});
  }

  ExpectationOutcome Evaluate(const std::string& text) {
    lab_.parts[0].expect = {{.text = text}};
    const auto outcomes = EvaluateExpectations(lab_, cells_);
    EXPECT_THAT(outcomes, SizeIs(1));
    return outcomes.at(0);
  }

  Lab lab_;
  std::vector<CellSummary> cells_;
};

TEST_F(ExpectationOutcomes, AClaimIsAboutEveryCellButBaselines) {
  const ExpectationOutcome low = Evaluate("accuracy > 0.9");
  EXPECT_TRUE(low.held);
  EXPECT_EQ(low.part, "learn");
  const ExpectationOutcome high = Evaluate("accuracy > 0.95");
  EXPECT_FALSE(high.held);
  EXPECT_EQ(high.found,
            "accuracy 0.94 (ps, 1 worker), accuracy 0.94 (ring, 1 worker), "
            "accuracy 0.96 (ps, 4 workers), accuracy 0.96 (ring, 4 workers)")
      << "what breaks the claim comes first";
}

TEST_F(ExpectationOutcomes, WherePicks) {
  EXPECT_TRUE(Evaluate("accuracy > 0.95 where cluster.workers = 4").held);
  EXPECT_FALSE(Evaluate("accuracy > 0.95 where cluster.workers != 4").held);
  EXPECT_TRUE(Evaluate("param_hash equal across repeats where exchange = ring").held);
  EXPECT_FALSE(Evaluate("param_hash equal across repeats").held);
  EXPECT_TRUE(Evaluate("param_hash equal across ranks").held);
  const ExpectationOutcome nobody = Evaluate("accuracy > 0.5 where cluster.workers = 9");
  EXPECT_FALSE(nobody.held);
  EXPECT_EQ(nobody.found, "no cell is picked by its where");
}

TEST_F(ExpectationOutcomes, TimesDividesByTheCellThatDiffersInTheExchangeAlone) {
  for (CellSummary& cell : cells_) {
    cell.settings = {{"exchange", "{kind: " + cell.exchange + "}"}};
    cell.samples_per_second.median = (cell.exchange == "ps" ? 100 : 150) * cell.workers;
  }
  const ExpectationOutcome faster =
      Evaluate("samples_per_second > 1.4 times ps where exchange = ring");
  EXPECT_TRUE(faster.held);
  EXPECT_EQ(faster.found,
            "samples_per_second 150, 1.5 times that of ps (ring, 1 worker), samples_per_second "
            "600, 1.5 times that of ps (ring, 4 workers)");
  EXPECT_FALSE(Evaluate("samples_per_second > 1.6 times ps where exchange = ring").held);
  EXPECT_TRUE(Evaluate("samples_per_second = 1 times ps where exchange = ps").held);
  const ExpectationOutcome nobody = Evaluate("samples_per_second > 0.1 times ps async");
  EXPECT_FALSE(nobody.held);
  EXPECT_THAT(nobody.found,
              HasSubstr("no samples_per_second to divide by that of ps async (ps, 1 worker)"));
}

TEST_F(ExpectationOutcomes, AFigureThatIsNotThereHoldsNothing) {
  const ExpectationOutcome outcome = Evaluate("ratio < 1.15 where exchange = ring");
  EXPECT_FALSE(outcome.held);
  EXPECT_EQ(outcome.found, "no ratio (ring, 1 worker), no ratio (ring, 4 workers)");
}

TEST_F(ExpectationOutcomes, ALossThatRanAwayHoldsNothing) {
  for (CellSummary& cell : cells_) {
    cell.final_loss = std::numeric_limits<double>::quiet_NaN();
  }
  EXPECT_FALSE(Evaluate("final_loss < 0.3").held);
  EXPECT_FALSE(Evaluate("final_loss > 0.3").held);
}

TEST_F(ExpectationOutcomes, WhatWasNotRunIsNotClaimed) {
  cells_.erase(cells_.begin());
  const ExpectationOutcome outcome = Evaluate("accuracy > 0.5");
  EXPECT_FALSE(outcome.held);
  EXPECT_EQ(outcome.found, "3 of 4 cells were run");
}

TEST_F(ExpectationOutcomes, AMeanRunsOverCellsThatDifferInTheSeedAlone) {
  lab_.parts[0].cells.clear();
  cells_.clear();
  for (const char* exchange : {"ps", "ring"}) {
    for (const std::uint64_t seed : {1, 2}) {
      lab_.parts[0].cells.push_back({});
      CellSummary cell{.part = "learn", .exchange = exchange, .fabric = "native"};
      cell.settings = {{"exchange", exchange}, {"seed", std::to_string(seed)}};
      cell.workers = 2;
      cell.seed = seed;
      cell.accuracy = seed == 1 ? 0.93 : 0.99;
      cells_.push_back(cell);
    }
  }
  EXPECT_FALSE(Evaluate("accuracy > 0.95").held);
  const ExpectationOutcome mean = Evaluate("mean accuracy > 0.95 over seed");
  EXPECT_TRUE(mean.held);
  EXPECT_EQ(mean.found,
            "accuracy 0.96 (ps, 2 workers, mean of 2), accuracy 0.96 (ring, 2 workers, mean of 2)");
}

}  // namespace
}  // namespace ranklab::experiment
