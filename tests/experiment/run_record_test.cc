#include "experiment/run_record.h"

#include <cmath>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/random.h"
#include "core/status.h"

namespace ranklab::experiment {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(Spread, MedianOfEvenAndOddCounts) {
  EXPECT_EQ(SpreadOf({3, 1, 2}).median, 2);
  EXPECT_EQ(SpreadOf({4, 1, 2, 3}).median, 2.5);
  EXPECT_EQ(SpreadOf({5}).least, 5);
  EXPECT_EQ(SpreadOf({3, 1, 2}).least, 1);
  EXPECT_EQ(SpreadOf({3, 1, 2}).most, 3);
}

// Every field differs from its default, so that one that is not written shows.
RunSummary FullSummary() {
  CellSummary cell{
      .part = "scale",
      .cell = 3,
      .baseline = true,
      .settings = {{"fabric.preset", "nvlink4"}, {"cluster.workers", "4"}, {"a", "z"}},
      .exchange = "ps staleness 2",
      .transport = "grpc",
      .fabric = "nvlink4",
      .workers = 4,
      .servers = 2,
      .threads = 3,
      .seed = std::numeric_limits<std::uint64_t>::max(),
      .time_scale = 500,
      .kind = FigureKind::kShaped,
      .repeats = 3,
      .counted_steps = 28,
      .samples_per_second = {1.5, 1.25, 1.75},
      .step_seconds = {0.1, 0.05, 0.3},
      .exposed_seconds = {0.01, 0.005, 0.03},
      .start_up_seconds = {0.2, 0.1, 0.4},
      .efficiency = 0.75,
      .predicted_seconds = 0.09,
      .ratio = 1.11,
      .initial_loss = 2.3,
      .final_loss = 0.25,
      .accuracy = 0.96,
      .param_hashes = {"aa", "bb"},
      .hash_equal_across_ranks = true,
      .hash_equal_across_repeats = true,
      .work = {.parameters = 10,
               .model_flops = 60,
               .hardware_flops = 80,
               .tokens = 16,
               .formula = "6 N",
               .peak_flops = 9,
               .peak = "a peak"},
      .breakdown = {{.rank = 1,
                     .input = 1,
                     .forward = 2,
                     .backward = 3,
                     .exposed = 4,
                     .optimizer = 5,
                     .other = 6,
                     .hidden = 7,
                     .samples_per_second = 8,
                     .peak_flops = 9,
                     .mfu = 0.5,
                     .hfu = 0.75}},
      .loss_curve = {2.3, 1.1},
      .loss_seconds = {0.5, 1.0},
      .staleness = {{0, 10}, {2, 5}},
      .messages = 100,
      .could_not_keep_up = 7,
      .lateness_log2_us = {90, 10},
      .bytes_sent_per_step = 1 << 20,
      .samples_per_rank = {64, 65},
      .passes_per_rank = {1.5, 1.6},
      .memory = {{.rank = 0, .kind = "weights", .now = 40, .peak = 41, .predicted = 42},
                 {.rank = 1, .kind = "communication", .now = 43, .peak = 44}},
      .findings = {{.code = "CPU_OVERSUBSCRIBED",
                    .cause = "few cores",
                    .text = "\"quoted\"\nand more",
                    .remedy = "fewer workers",
                    .severity = 2.5}},
  };
  return {
      .lab = "compare",
      .question = "Why?",
      .lab_text = "name: compare\n",
      .lab_hash = "0123",
      .build = "0.1.0",
      .environment = {{"cores", "2"}, {"kernel", "6.1"}},
      .cells = {cell, cell},
      .expectations = {{.part = "scale", .text = "accuracy > 0.9", .held = true, .found = "0.96"}},
      .sentences = {"The ring wins."},
      .verdict = "all expectations held",
      .exit_code = 1,
      .complete = true,
  };
}

TEST(RunSummary, JsonBringsBackEveryField) {
  const RunSummary before = FullSummary();
  const std::string text = ToJson(before);
  const auto after = RunSummaryFromJson(text);
  ASSERT_TRUE(after.ok()) << MessageOf(after.status());
  EXPECT_EQ(ToJson(*after), text);
  EXPECT_EQ(after->lab_text, before.lab_text);
  EXPECT_EQ(after->environment, before.environment);
  ASSERT_EQ(after->cells.size(), 2U);
  const CellSummary& cell = after->cells[1];
  EXPECT_EQ(cell.seed, before.cells[1].seed);
  EXPECT_EQ(cell.kind, FigureKind::kShaped);
  EXPECT_EQ(cell.staleness, before.cells[1].staleness);
  EXPECT_EQ(cell.findings[0].text, before.cells[1].findings[0].text);
  EXPECT_EQ(cell.breakdown[0].other, 6);
  EXPECT_THAT(cell.settings, ElementsAre(Pair("fabric.preset", "nvlink4"),
                                         Pair("cluster.workers", "4"), Pair("a", "z")))
      << "in the order of the sweep";
}

TEST(RunSummary, AUtilizationAbove100PercentIsRefused) {
  for (double RankBreakdown::*share : {&RankBreakdown::mfu, &RankBreakdown::hfu}) {
    RunSummary summary = FullSummary();
    summary.cells[1].breakdown[0].*share = 1;
    EXPECT_TRUE(RunSummaryFromJson(ToJson(summary)).ok());
    summary.cells[1].breakdown[0].*share = 1.56;
    const auto read = RunSummaryFromJson(ToJson(summary));
    EXPECT_THAT(MessageOf(read.status()), AllOf(HasSubstr("cells[1]: rank 1"), HasSubstr("156 %"),
                                                HasSubstr("more than 100 % cannot be")));
  }
}

TEST(RunSummary, AnUnknownUtilizationIsNull) {
  RunSummary summary = FullSummary();
  summary.cells[0].breakdown[0].mfu = std::numeric_limits<double>::quiet_NaN();
  const auto read = RunSummaryFromJson(ToJson(summary));
  ASSERT_TRUE(read.ok()) << MessageOf(read.status());
  EXPECT_TRUE(std::isnan(read->cells[0].breakdown[0].mfu));
}

TEST(RunSummary, ALossThatRanAwayIsNull) {
  RunSummary summary = FullSummary();
  summary.cells[0].final_loss = std::numeric_limits<double>::infinity();
  summary.cells[0].loss_curve[1] = std::numeric_limits<double>::quiet_NaN();
  const auto after = RunSummaryFromJson(ToJson(summary));
  ASSERT_TRUE(after.ok()) << MessageOf(after.status());
  EXPECT_TRUE(std::isnan(after->cells[0].final_loss));
  EXPECT_TRUE(std::isnan(after->cells[0].loss_curve[1]));
}

TEST(RunSummary, ATextThatIsNotUtf8DoesNotCostTheRecord) {
  RunSummary summary = FullSummary();
  summary.environment["processor"] = "odd \xff name";
  EXPECT_TRUE(RunSummaryFromJson(ToJson(summary)).ok());
}

std::string Refusal(const std::string& text) {
  const auto summary = RunSummaryFromJson(text);
  EXPECT_EQ(summary.status().code(), absl::StatusCode::kInvalidArgument);
  return MessageOf(summary.status());
}

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST(RunSummary, HostileJsonIsRefusedWithItsPlace) {
  const std::string good = ToJson(FullSummary());
  EXPECT_EQ(Refusal("{"), "summary: not JSON");
  EXPECT_EQ(Refusal("[]"), "summary: its format is not \"ranklab summary 3\"");
  EXPECT_EQ(Refusal(Replaced(good, "\"workers\": 4", "\"workers\": 4294967296")),
            "summary: cells[0].workers is not a whole number in range");
  EXPECT_EQ(Refusal(Replaced(good, "\"workers\": 4", "\"workers\": 4.5")),
            "summary: cells[0].workers is not a whole number in range");
  EXPECT_EQ(Refusal(Replaced(good, "\"workers\": 4", "\"wrokers\": 4")),
            "summary: cells[0].workers is not present");
  EXPECT_EQ(Refusal(Replaced(good, "\"kind\": \"shaped\"", "\"kind\": \"real\"")),
            "summary: cells[0].kind is not measured, shaped, modelled or assumed");
  EXPECT_EQ(Refusal(Replaced(good, "\"lab\": \"compare\"", "\"lab\": {}")),
            "summary: lab is not a text");
  EXPECT_EQ(Refusal(std::string(100'000, '[')), "summary: not JSON");
}

TEST(RunSummary, AnyBytesGiveASummaryOrAStatus) {
  const std::string good = ToJson(FullSummary());
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    std::string text = good;
    for (int i = 0; i < 3; ++i) {
      text[random.Below(text.size())] = "{}[]\",:0-9etn"[random.Below(13)];
    }
    refused += RunSummaryFromJson(text).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace ranklab::experiment
