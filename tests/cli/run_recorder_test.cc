// The record of a run, from the events that a coordinator sends.
#include "cli/run_recorder.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "core/status.h"
#include "experiment/lab_reader.h"

namespace ranklab::cli {
namespace {

using ::testing::HasSubstr;

constexpr char kLab[] = R"(name: recorded
model:   {kind: mlp, layers: [64, 16, 10]}
data:    {kind: digits}
train:   {steps: 3, global_batch: 64}
cluster: {workers: 1}
exchange: {kind: none}
)";

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class RunRecorderTest : public ::testing::Test {
 protected:
  RunRecorderTest() {
    std::string name = ::testing::TempDir() + "run_recorder_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    parent_ = name;
    auto lab = experiment::ReadLab(kLab, "recorded.yaml", {});
    EXPECT_TRUE(lab.ok()) << MessageOf(lab.status());
    lab_ = *std::move(lab);
    auto recorder = RunRecorder::Make(lab_, parent_);
    EXPECT_TRUE(recorder.ok()) << MessageOf(recorder.status());
    recorder_ = *std::move(recorder);
  }
  ~RunRecorderTest() override {
    recorder_.reset();
    std::filesystem::remove_all(parent_);
  }

  void Start() {
    v1::RunEvent event;
    event.mutable_started()->set_generation(1);
    event.mutable_started()->set_time_scale(1);
    recorder_->OnEvent(event);
  }
  // Of rank 0, each with two spans.
  void AddSteps(int steps) {
    v1::RunEvent event;
    event.mutable_rows()->set_generation(1);
    for (int step = 1; step <= steps; ++step) {
      v1::StepRow& row = *event.mutable_rows()->add_rows();
      row.set_step(step);
      row.set_samples(64);
      row.set_begins_ns(1000 * step);
      row.set_step_ns(1000);
      for (const char* name : {"forward", "backward"}) {
        v1::Span& span = *row.add_spans();
        span.set_track(static_cast<std::uint32_t>(Track::kCompute));
        span.set_name(name);
        span.set_begins_ns(1000 * step);
        span.set_ends_ns(1000 * step + 400);
      }
    }
    recorder_->OnEvent(event);
  }
  void End() {
    v1::RunEvent event;
    event.mutable_ended()->set_generation(1);
    event.mutable_ended()->add_workers();
    recorder_->OnEvent(event);
  }
  std::string File(const std::string& name) const { return recorder_->folder() + "/" + name; }

  std::string parent_;
  experiment::Lab lab_;
  std::unique_ptr<RunRecorder> recorder_;
};

// The disk is a pipe that nobody reads yet, and that holds less than the steps take: the events go
// on, up to the end of the cell.
TEST_F(RunRecorderTest, EventsDoNotWaitForTheDisk) {
  const std::string steps = File("steps.csv");
  const std::string head = ReadAll(steps);
  ASSERT_TRUE(std::filesystem::remove(steps));
  ASSERT_EQ(mkfifo(steps.c_str(), 0600), 0);
  Start();
  AddSteps(2000);
  End();
  EXPECT_EQ(recorder_->Place(), "between two cells");
  std::string written;
  std::thread disk([&] {
    std::ifstream pipe(steps);
    std::filesystem::remove(steps);
    std::ofstream(steps) << head;  // for the page, which is made once the pipe is empty
    written.assign(std::istreambuf_iterator<char>(pipe), {});
  });
  const absl::Status finished = recorder_->Finish(0, "all cells ran");
  disk.join();
  EXPECT_TRUE(finished.ok()) << MessageOf(finished);
  EXPECT_NE(written.find(",2000,0,64,"), std::string::npos) << "the last step";
}

TEST_F(RunRecorderTest, ADiskThatTakesNothingIsToldAtTheEndBesideTheVerdict) {
  std::ofstream(File("cells")) << "a file where a folder belongs";
  Start();
  AddSteps(3);
  End();
  const absl::Status finished = recorder_->Finish(0, "all cells ran");
  EXPECT_THAT(MessageOf(finished), HasSubstr(File("cells")));
  EXPECT_EQ(recorder_->summary().verdict, "all cells ran");
}

TEST_F(RunRecorderTest, TheTraceSaysHowManyStepsThereWere) {
  Start();
  AddSteps(40);
  End();
  ASSERT_TRUE(recorder_->Finish(0, "all cells ran").ok());
  const auto trace = nlohmann::json::parse(ReadAll(File("cells/recorded-0-0/trace/rank_0.json")));
  EXPECT_EQ(trace["ranklab"]["steps_traced"], 40);
  EXPECT_EQ(trace["ranklab"]["steps_written"], 40);
}

}  // namespace
}  // namespace ranklab::cli
