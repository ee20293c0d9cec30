#include "report/table.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ranklab::report {
namespace {

using experiment::CellSummary;
using experiment::FigureKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<CellSummary> TwoParts() {
  CellSummary ring{.part = "scale",
                   .settings = {{"exchange", "{kind: collective}"}, {"cluster.workers", "4"}},
                   .exchange = "ring",
                   .transport = "tcp",
                   .fabric = "nvlink4",
                   .workers = 4,
                   .kind = FigureKind::kShaped,
                   .repeats = 3,
                   .samples_per_second = {12345, 12000, 12700},
                   .step_seconds = {0.0125, 0.0120, 0.0130},
                   .exposed_seconds = {0.0005, 0.0004, 0.0006},
                   .efficiency = 0.912,
                   .predicted_seconds = 0.0120,
                   .ratio = 1.2,
                   .final_loss = 0.125,
                   .accuracy = 0.9678};
  ring.findings = {{.code = "ABOVE_PREDICTION", .cause = "late", .text = "because", .severity = 1}};
  CellSummary none{.part = "scale",
                   .baseline = true,
                   .settings = {{"train.batch_per_worker", "64"}},
                   .exchange = "none",
                   .fabric = "native",
                   .workers = 1,
                   .kind = FigureKind::kShaped,
                   .repeats = 1,
                   .samples_per_second = {3000, 3000, 3000},
                   .step_seconds = {0.020, 0.020, 0.020},
                   .efficiency = 1};
  CellSummary rate = ring;
  rate.part = "rates";
  rate.settings = {{"train.learning_rate", "0.5"}};
  return {ring, none, rate};
}

TEST(Table, IsAlignedByWhatIsSeen) {
  EXPECT_EQ(
      PrintTable(BuildTable(TwoParts())),
      "part   exchange  learning_rate  fabric   workers  threads  samples/s         step  exposed  "
      "efficiency  predicted  ratio  final loss  accuracy  kind\n"
      "-----  --------  -------------  -------  -------  -------  ---------  -----------  -------  "
      "----------  ---------  -----  ----------  --------  ----------\n"
      "scale  none                  -  native         1        1      3,000      20.0 ms        -  "
      "      1.00          -      -      0.0000     0.000  shaped\n"
      "scale  ring                  -  nvlink4        4        1     12,300  12.5 ms ±4%   500 us  "
      "      0.91    12.0 ms   1.20      0.1250     0.968  shaped [1]\n"
      "\n"
      "rates  ring                0.5  nvlink4        4        1     12,300  12.5 ms ±4%   500 us  "
      "      0.91    12.0 ms   1.20      0.1250     0.968  shaped [1]\n"
      "[1] ABOVE_PREDICTION in 2 cells, late; such as scale, ring, nvlink4, 4 workers: "
      "because.\n");
}

TEST(Table, FindingsOfOneCodeAndCauseAreOneLineWithTheWorst) {
  std::vector<CellSummary> cells = TwoParts();
  cells[1].findings = {{.code = "ABOVE_PREDICTION", .cause = "native", .text = "alone"}};
  cells[2].findings = {
      {.code = "COULD_NOT_KEEP_UP", .text = "late", .remedy = "wait"},
      {.code = "ABOVE_PREDICTION", .cause = "late", .text = "even more so", .severity = 2}};
  const Table table = BuildTable(cells);
  EXPECT_THAT(table.notes,
              ElementsAre("[1] ABOVE_PREDICTION: alone.",
                          "[2] ABOVE_PREDICTION in 2 cells, late; worst in rates, ring, nvlink4, 4 "
                          "workers, learning_rate 0.5: even more so.",
                          "[3] COULD_NOT_KEEP_UP: late. Remedy: wait."));
  EXPECT_EQ(table.rows[0].back(), "shaped [1]");
  EXPECT_EQ(table.rows[1].back(), "shaped [2]");
  EXPECT_EQ(table.rows[2].back(), "shaped [3] [2]");
}

TEST(Table, MarkdownHasTheSameCells) {
  const std::string text = PrintMarkdown(BuildTable(TwoParts()));
  EXPECT_THAT(text, HasSubstr("| scale | ring | - | nvlink4 | 4 | 1 | 12,300 | 12.5 ms ±4% |"));
  EXPECT_THAT(text, HasSubstr("| :--- | :--- | ---: |"));
  EXPECT_THAT(text, HasSubstr("\n[1] ABOVE_PREDICTION in 2 cells, late; such as "));
}

TEST(Table, BarsInTextDoNotBreakMarkdown) {
  std::vector<CellSummary> cells = TwoParts();
  cells[0].settings.emplace_back("data.images", "a|b|c");
  EXPECT_THAT(PrintMarkdown(BuildTable(cells)), HasSubstr("a\\|b\\|c"));
}

TEST(Table, WithoutCellsThereIsAHead) {
  EXPECT_THAT(PrintTable(BuildTable({})), HasSubstr("exchange"));
}

TEST(Table, WidthCountsCodePoints) {
  EXPECT_EQ(WidthOf("±4%"), 3U);
  EXPECT_EQ(WidthOf("Zürich"), 6U);
}

}  // namespace
}  // namespace ranklab::report
