#include "report/record_folder.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "core/status.h"
#include "report/atomic_file.h"
#include "report/steps_csv.h"

namespace ranklab::report {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string FileText(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class RecordFolderTest : public ::testing::Test {
 protected:
  RecordFolderTest()
      : parent_(::testing::TempDir() + "record_folder_test_" + std::to_string(getpid())) {
    std::filesystem::remove_all(parent_);
    lab_.name = "compare";
    lab_.file = "labs/compare.yaml";
    lab_.text = "name: compare  # as written\n";
    lab_.hash = "00ff";
    lab_.overrides = {"train.steps=8"};
    lab_.parts.push_back({.name = "learn"});
    lab_.parts[0].cells.resize(2);
    lab_.parts[0].cells[1].spec.seed = 9;
  }
  ~RecordFolderTest() override { std::filesystem::remove_all(parent_); }

  RecordFolder Create() {
    // 2024-01-02 03:04:05 UTC.
    auto folder = RecordFolder::Create(
        parent_, lab_, std::chrono::system_clock::time_point(std::chrono::seconds(1704164645)));
    EXPECT_TRUE(folder.ok()) << MessageOf(folder.status());
    return *std::move(folder);
  }

  std::string parent_;
  experiment::Lab lab_;
};

TEST_F(RecordFolderTest, IsNamedForLabAndTimeAndNeverTwice) {
  const RecordFolder first = Create();
  EXPECT_EQ(first.path(), parent_ + "/compare-20240102-030405");
  EXPECT_EQ(FileText(first.path() + "/lab.yaml"), lab_.text) << "verbatim";
  EXPECT_EQ(Create().path(), parent_ + "/compare-20240102-030405-2");
}

TEST_F(RecordFolderTest, TheEnvironmentSaysWhatWasRunWhere) {
  const RecordFolder folder = Create();
  ASSERT_TRUE(
      folder.WriteEnvironment(lab_, {.build = "0.1.0", .environment = {{"cores", "2"}}}).ok());
  const auto json = nlohmann::json::parse(FileText(folder.path() + "/environment.json"));
  EXPECT_EQ(json["lab_hash"], "00ff");
  EXPECT_EQ(json["overrides"], nlohmann::json({"train.steps=8"}));
  EXPECT_EQ(json["seeds"], nlohmann::json({1, 9}));
  EXPECT_EQ(json["cores"], "2");
  EXPECT_EQ(json["build"], "0.1.0");
}

TEST_F(RecordFolderTest, StepsAreInModelledSecondsBesideTheirScale) {
  const RecordFolder folder = Create();
  experiment::CellRun run{.cell = 3, .repeat = 2, .time_scale = 100};
  run.steps.resize(2);
  run.steps[1].push_back({.step = 7,
                          .epoch = 1,
                          .samples = 4,
                          .loss_sum = 2,
                          .weight = 4,
                          .begins = Nanos(5'000'000'000),
                          .step_time = Nanos(250'000'000),
                          .backward = Nanos(100'000'000),
                          .hidden = Nanos(40'000'000),
                          .staleness = 2,
                          .bytes_sent = 11,
                          .bytes_received = 12});
  ASSERT_TRUE(folder.AppendSteps("learn", run).ok());
  ASSERT_TRUE(folder.AppendSteps("learn", {.time_scale = 1}).ok()) << "a run without steps";
  EXPECT_EQ(FileText(folder.path() + "/steps.csv"),
            std::string(StepsCsvHeader()) +
                "learn,3,2,1,7,1,4,0.5,0,0.0025,0,0,0.001,0,0,0,2,11,12,100,1,0,0.0004\n");
}

TEST_F(RecordFolderTest, TheSummaryIsReplacedWhole) {
  const RecordFolder folder = Create();
  experiment::RunSummary summary{.lab = "compare", .question = "Why?"};
  ASSERT_TRUE(folder.WriteSummary(summary).ok());
  summary.cells.push_back({.part = "learn", .exchange = "ring", .fabric = "native"});
  summary.sentences = {"The ring wins."};
  summary.expectations = {{.part = "learn", .text = "accuracy > 0.9", .found = "accuracy 0.1"}};
  ASSERT_TRUE(folder.WriteSummary(summary).ok());
  const auto read = experiment::RunSummaryFromJson(FileText(folder.path() + "/summary.json"));
  ASSERT_TRUE(read.ok()) << MessageOf(read.status());
  EXPECT_EQ(read->cells.size(), 1U);
  const std::string table = FileText(folder.path() + "/table.md");
  EXPECT_THAT(table, StartsWith("# compare\n\nWhy?\n\n- The ring wins.\n\n| part |"));
  EXPECT_THAT(table, HasSubstr("| learn | accuracy > 0.9 | **no** | accuracy 0.1 |"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/summary.json.part"));
}

TEST_F(RecordFolderTest, TracesAndInjectionsLieInTheirCell) {
  const RecordFolder folder = Create();
  ASSERT_TRUE(folder.WriteTrace("learn", 4, 2, {.rank = 3, .world_size = 4}).ok());
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/cells/learn-4-2/trace/rank_3.json"));
  ASSERT_TRUE(
      folder
          .AppendInjection(
              "learn", 4, 2,
              {.member = "worker 2", .step = 10, .asked = "{a: \"b\"}", .applied = "2.0 times"})
          .ok());
  ASSERT_TRUE(
      folder.AppendInjection("learn", 4, 2, {.member = "worker 2", .step = 12, .ends = true}).ok());
  EXPECT_EQ(
      FileText(folder.path() + "/cells/learn-4-2/injections.jsonl"),
      "{\"member\":\"worker 2\",\"step\":10,\"asked\":\"{a: \\\"b\\\"}\",\"applied\":\"2.0 "
      "times\",\"ends\":false}\n"
      "{\"member\":\"worker 2\",\"step\":12,\"asked\":\"\",\"applied\":\"\",\"ends\":true}\n");
}

TEST_F(RecordFolderTest, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(parent_) << "a file where the folder should be";
  const auto folder = RecordFolder::Create(parent_, lab_, {});
  EXPECT_EQ(folder.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(folder.status()), HasSubstr(parent_));
}

TEST(WriteWhole, LeavesTheOldTextWhenItCannotWrite) {
  const std::string path = ::testing::TempDir() + "no_such_folder/file";
  EXPECT_THAT(MessageOf(WriteWhole(path, "text")), HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace ranklab::report
