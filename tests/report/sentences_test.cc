// Sentences say what the numbers carry and nothing else.
#include "report/sentences.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/status.h"
#include "experiment/lab_reader.h"
#include "report/comparison.h"

namespace ranklab::report {
namespace {

using experiment::CellSummary;
using experiment::Lab;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Lab ReadParts(const std::string& parts) {
  auto lab = experiment::ReadLab(
      "name: t\nmodel: {kind: mlp, layers: [64, 10]}\n"
      "train: {steps: 10, batch_per_worker: 8}\ncluster: {workers: 4}\n" +
          parts,
      "t.yaml", {});
  EXPECT_TRUE(lab.ok()) << MessageOf(lab.status());
  return lab.ok() ? *std::move(lab) : Lab{};
}

CellSummary CellOf(const std::string& part, const std::string& exchange, double rate,
                   const std::string& fabric = "pcie4_x16") {
  CellSummary cell{.part = part, .exchange = exchange, .fabric = fabric, .workers = 4};
  cell.settings = {{"exchange", exchange}};
  cell.repeats = 3;
  cell.samples_per_second = {.median = rate, .least = rate * 0.97, .most = rate * 1.03};
  cell.efficiency = rate / 20000;
  return cell;
}

TEST(Compare, ADifferenceMustExceedTheRepeats) {
  const CellSummary a = CellOf("p", "ps", 1000);
  EXPECT_EQ(Compare(CellOf("p", "ring", 1100), a), Difference::kFaster);
  EXPECT_EQ(Compare(CellOf("p", "ring", 900), a), Difference::kSlower);
  EXPECT_EQ(Compare(CellOf("p", "ring", 1050), a), Difference::kNone) << "the ranges touch";
  CellSummary once = CellOf("p", "ring", 2000);
  once.repeats = 1;
  EXPECT_EQ(Compare(once, a), Difference::kUnknown);
  CellSummary crowded = CellOf("p", "ring", 2000);
  crowded.findings = {{.code = "CPU_OVERSUBSCRIBED"}};
  EXPECT_EQ(Compare(crowded, a), Difference::kUnknown);
}

TEST(Sentences, TheStartUpIsThatOfTheMostWorkers) {
  const Lab lab = ReadParts("parts: [{name: learn}]\n");
  std::vector<CellSummary> cells = {CellOf("learn", "ring", 100), CellOf("learn", "ring", 100),
                                    CellOf("learn", "ring", 100)};
  cells[0].workers = 2;
  cells[0].start_up_seconds = {.median = 5, .least = 5, .most = 5};
  cells[1].start_up_seconds = {.median = 0.1, .least = 0.05, .most = 0.4};
  cells[2].start_up_seconds = {.median = 0.2, .least = 0.05, .most = 0.3};
  EXPECT_THAT(
      WriteSentences(lab, cells),
      Contains("Start-up: with 4 workers, the first step began 150 ms after the cluster was "
               "free (the last join, or the end of the run before), at most 400 ms."));
}

TEST(Sentences, SayWhereTheParameterServerLosesAndByHowMuch) {
  const Lab lab = ReadParts("parts: [{name: scale}]\n");
  const std::vector<CellSummary> cells = {
      CellOf("scale", "ps", 5000), CellOf("scale", "ring", 9000),
      CellOf("scale", "ps", 18000, "nvlink4"), CellOf("scale", "ring", 18100, "nvlink4")};
  EXPECT_THAT(
      WriteSentences(lab, cells),
      ElementsAre(
          "scale: with 4 workers the synchronous parameter server loses to the ring on "
          "pcie4_x16 by a factor of 1.80 (5,000 against 9,000 samples/s).",
          "scale: with 4 workers the synchronous parameter server and the ring differ by no "
          "more than the repeats do on nvlink4.",
          "scale: with 4 workers, ps keeps an efficiency of 0.90 on nvlink4 and of 0.25 on "
          "pcie4_x16.",
          "scale: with 4 workers, ring keeps an efficiency of 0.91 on nvlink4 and of 0.45 on "
          "pcie4_x16."));
}

TEST(Sentences, AreSilentWithoutRepeats) {
  const Lab lab = ReadParts("parts: [{name: scale}]\n");
  std::vector<CellSummary> cells = {CellOf("scale", "ps", 5000), CellOf("scale", "ring", 9000)};
  for (CellSummary& cell : cells) {
    cell.repeats = 1;
  }
  EXPECT_THAT(WriteSentences(lab, cells), IsEmpty());
  EXPECT_THAT(WriteSentences(lab, {}), IsEmpty());
}

TEST(Sentences, SayWhichStalenessHelpedInWhichCase) {
  const Lab lab = ReadParts(
      "parts:\n"
      "  - {name: always, scenario: [{at_step: 3, rank: 2, slow: {factor: 3}}]}\n"
      "  - {name: rotating, scenario: [{at_step: 3, rank: 0, slow: {factor: 3, rotate_every: "
      "1}}]}\n");
  const std::vector<CellSummary> cells = {
      CellOf("always", "ps", 1000),        CellOf("always", "ps staleness 2", 1010),
      CellOf("always", "ps async", 2500),  CellOf("always", "ring", 1000),
      CellOf("rotating", "ps", 1000),      CellOf("rotating", "ps staleness 2", 1700),
      CellOf("rotating", "ps async", 1800)};
  EXPECT_THAT(
      WriteSentences(lab, cells),
      ElementsAre(
          "always: with rank 2 always slow, against the synchronous parameter server, "
          "staleness 2 gains nothing beyond the spread of the repeats and no bound gives "
          "2.50 times its samples/s.",
          "rotating: with a slowness that moves to the next rank every step, against the "
          "synchronous parameter server, staleness 2 gives 1.70 times its samples/s and no "
          "bound gives 1.80 times its samples/s.",
          "Against a rank that is always slow, no bound (2.50 times) helped; against a "
          "slowness that rotates, staleness 2 (1.70 times) and no bound (1.80 times) "
          "helped."));
}

// Three repeats that hardly differ tell five percent apart; that is still not much of a help.
TEST(Sentences, TellALittleHelpFromHelp) {
  const Lab lab = ReadParts(
      "parts:\n"
      "  - {name: a, scenario: [{at_step: 3, rank: 2, slow: {factor: 3}}]}\n"
      "  - {name: b, scenario: [{at_step: 3, rank: 0, slow: {factor: 3, rotate_every: 2}}]}\n");
  std::vector<CellSummary> cells = {CellOf("a", "ps", 1000), CellOf("a", "ps staleness 2", 1050),
                                    CellOf("a", "ps async", 1800), CellOf("b", "ps", 1000),
                                    CellOf("b", "ps staleness 2", 1050)};
  for (CellSummary& cell : cells) {
    const double rate = cell.samples_per_second.median;
    cell.samples_per_second = {.median = rate, .least = rate - 1, .most = rate + 1};
  }
  EXPECT_EQ(WriteSentences(lab, cells).back(),
            "Against a rank that is always slow, no bound (1.80 times) helped and staleness 2 "
            "(1.05 times) hardly; against a slowness that rotates, no staleness bound helped and "
            "staleness 2 (1.05 times) hardly.");
}

TEST(Sentences, SayThatNothingHelpedWhereNothingDid) {
  const Lab lab = ReadParts(
      "parts:\n"
      "  - {name: a, scenario: [{at_step: 3, rank: 2, slow: {factor: 3}}]}\n"
      "  - {name: b, scenario: [{at_step: 3, rank: 0, slow: {factor: 3, rotate_every: 2}}]}\n");
  const std::vector<CellSummary> cells = {
      CellOf("a", "ps", 1000), CellOf("a", "ps staleness 2", 1000), CellOf("b", "ps", 1000),
      CellOf("b", "ps staleness 2", 1500)};
  EXPECT_EQ(
      WriteSentences(lab, cells).back(),
      "Against a rank that is always slow, no staleness bound helped; against a slowness that "
      "rotates, staleness 2 (1.50 times) helped.");
}

}  // namespace
}  // namespace ranklab::report
