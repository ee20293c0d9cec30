// The report of a record, made again from its folder; and folders of which none can be made.
#include "report/web/render_record.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/status.h"
#include "report/atomic_file.h"
#include "report/steps_csv.h"

namespace ranklab::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string FileText(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

experiment::CellRun RunOfTwoRanks() {
  experiment::CellRun run{.cell = 0, .repeat = 1, .time_scale = 10};
  for (int rank = 0; rank < 2; ++rank) {
    run.steps.push_back({{.step = 1,
                          .samples = 8,
                          .begins = Nanos(5000),
                          .step_time = Nanos(4000),
                          .forward = Nanos(1000 * (rank + 1))}});
  }
  return run;
}

class RenderRecordTest : public ::testing::Test {
 protected:
  RenderRecordTest()
      : folder_(::testing::TempDir() + "render_record_test_" + std::to_string(getpid())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/cells/learn-0-1/trace");
    experiment::RunSummary summary{.lab = "compare", .verdict = "all cells ran"};
    summary.cells.push_back(
        {.part = "learn", .exchange = "ring", .fabric = "native", .workers = 2});
    Write("summary.json", experiment::ToJson(summary));
    Write("steps.csv", std::string(StepsCsvHeader()) + StepsCsvLines("learn", RunOfTwoRanks()));
  }
  ~RenderRecordTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(WriteWhole(folder_ + "/" + name, text).ok());
  }
  std::string Refusal() const {
    const auto rendered = RenderRecord(folder_);
    EXPECT_FALSE(rendered.ok());
    return MessageOf(rendered.status());
  }

  std::string folder_;
};

TEST_F(RenderRecordTest, WritesTableAndPageFromTheFolderAlone) {
  const auto summary = RenderRecord(folder_);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->lab, "compare");
  EXPECT_THAT(FileText(folder_ + "/table.md"),
              AllOf(HasSubstr("# compare"), HasSubstr("| ring |")));
  EXPECT_THAT(FileText(folder_ + "/report.html"), HasSubstr("\"timelines\":[],\"traces\":[]"));
}

TEST_F(RenderRecordTest, WhatWasInjectedHasATimelineAndTracesAreLinked) {
  Write("cells/learn-0-1/injections.jsonl", "{}\n");
  Write("cells/learn-0-1/trace/rank_0.json", "{}");
  Write("cells/learn-0-1/trace/rank_1.json", "{}");
  ASSERT_TRUE(RenderRecord(folder_).ok());
  const std::string page = FileText(folder_ + "/report.html");
  EXPECT_THAT(page, HasSubstr("\"forward\":2e-07"));  // 2 us of wall time at a scale of 10
  EXPECT_THAT(page, HasSubstr("\"folder\":\"cells/learn-0-1/trace\""));
  EXPECT_THAT(page, HasSubstr("\"ranks\":2"));
}

TEST_F(RenderRecordTest, AFolderThatNoRunLeftIsRefusedByName) {
  folder_ += "/cells";
  const auto rendered = RenderRecord(folder_);
  EXPECT_EQ(rendered.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(rendered.status()),
              AllOf(HasSubstr(folder_ + "/summary.json cannot be read: No such file"),
                    HasSubstr("name a folder that `ranklab run` left")));
}

TEST_F(RenderRecordTest, ADamagedSummaryIsRefusedWithItsPlaceAndARemedy) {
  const std::string whole = FileText(folder_ + "/summary.json");
  Write("summary.json", whole.substr(0, whole.size() / 2));
  EXPECT_THAT(Refusal(),
              AllOf(HasSubstr("/summary.json: summary: not JSON"), HasSubstr("run the lab again")));
  Write("summary.json", "{\"format\": \"another\"}");
  EXPECT_THAT(Refusal(), HasSubstr("its format is not"));
}

TEST_F(RenderRecordTest, DamagedStepsAreRefusedWithTheirLine) {
  const std::string whole = FileText(folder_ + "/steps.csv");
  Write("steps.csv", whole.substr(0, whole.size() - 5));
  EXPECT_THAT(Refusal(), HasSubstr("/steps.csv: line 3: 21 fields"));
  Write("steps.csv", std::string(StepsCsvHeader()) + "learn,0,1,0\n");
  EXPECT_THAT(Refusal(), HasSubstr("line 2: 4 fields"));
  Write("steps.csv", std::string(StepsCsvHeader()) + "learn,x" + whole.substr(whole.find(",1,")));
  EXPECT_THAT(Refusal(), HasSubstr("line 2: not a number"));
  Write("steps.csv", "a,b,c\n");
  EXPECT_THAT(Refusal(), HasSubstr("line 1"));
  std::filesystem::remove(folder_ + "/steps.csv");
  EXPECT_THAT(Refusal(), HasSubstr("/steps.csv cannot be read"));
}

TEST_F(RenderRecordTest, AFolderThatCannotBeWrittenIsSaidSo) {
  std::filesystem::create_directories(folder_ + "/report.html/in the way");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("report.html"), HasSubstr("make it writable")));
}

}  // namespace
}  // namespace ranklab::report
