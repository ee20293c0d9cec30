// on_loss: stop. Whoever is lost, the run ends with one verdict that names it, with exit code 3, a
// record of what was done, and no process left. Prints how long the end took; the bounds asserted
// leave room for a busy machine.
#include <csignal>
#include <cstdio>
#include <sstream>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/program.h"
#include "tests/cluster/record.h"
#include "tests/cluster/services.h"

namespace ranklab::cluster_test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Seconds kUnderWay(60);  // until a lab is in mid-run
constexpr Seconds kClosed(6);     // 2 s where a connection closed, and room
constexpr Seconds kSuspectAfter(2);
constexpr Seconds kSlack(4);
constexpr Seconds kGone(2);

// Far more steps than anybody waits for. A short part first, for a finished cell in the record.
std::string LongLab(const std::string& exchange) {
  return R"(name: long
seed: 3
model:   {kind: mlp, layers: [64, 32, 10]}
data:    {kind: digits}
train:   {steps: 1000000, global_batch: 240, learning_rate: 0.01}
cluster: {workers: 4, servers: 2, device: cpu, suspect_after: 2s}
exchange: )" +
         exchange + R"(
parts:
  - name: short
    with: {train: {steps: 5}, cluster: {workers: 1}, exchange: {kind: none}}
  - name: long
    with: {train: {batch_per_worker: 60}}
)";
}
constexpr char kRing[] = "{kind: collective, algorithm: ring}";
constexpr char kServers[] = "{kind: ps}";

// What any of the run's processes gives as the reason of its end.
std::vector<std::string> VerdictsIn(const std::string& err) {
  constexpr std::string_view kPrefix = "ranklab: ";
  std::vector<std::string> verdicts;
  std::istringstream lines(err);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kPrefix)) {
      verdicts.push_back(line.substr(kPrefix.size()));
    }
  }
  return verdicts;
}

class Losses : public ::testing::Test {
 protected:
  // Returns once every worker is past step 20 of the long part's cell.
  void Start(const std::string& exchange) {
    lab_ = folder_.Write("lab.yaml", LongLab(exchange));
    run_ = std::make_unique<Program>(std::vector<std::string>{"run", lab_, "--out", Out()});
    ASSERT_TRUE(WaitUntil([this] { return InMidRun(); }, kUnderWay)) << run_->out() << run_->err();
  }

  std::string Out() const { return folder_.path() + "/out"; }

  bool InMidRun() const {
    const ProcessSeen worker = run_->Find("worker", 0);
    if (worker.pid == 0) {
      return false;
    }
    return WorkersPast(20, "long", worker.ValueOf("--coordinator")) == 4;
  }

  void SignalTo(const std::string& role, int rank, int signal) const {
    const ProcessSeen process = run_->Find(role, rank);
    ASSERT_NE(process.pid, 0) << role << " " << rank << "\n" << Describe(run_->Alive());
    kill(process.pid, signal);
  }

  // The whole contract but the verdict's words.
  void ExpectTheEnd(const char* what, Seconds limit) {
    const Ending ending = run_->Wait(limit + Seconds(30));
    std::printf("%s: over after %.2f s\n", what, ending.waited.count());
    RecordProperty("seconds_to_the_end", std::to_string(ending.waited.count()));
    EXPECT_TRUE(ending.in_time);
    EXPECT_LT(ending.waited, limit) << run_->err();
    EXPECT_EQ(ending.exit_code, 3) << run_->err();
    EXPECT_EQ(Describe(run_->LeftAfter(kGone)), "");
    record_ = ReadOneRecord(Out());
    EXPECT_EQ(record_.summary.exit_code, 3);
    EXPECT_FALSE(record_.summary.complete);
    EXPECT_EQ(VerdictsIn(run_->err()), std::vector<std::string>{record_.summary.verdict});
    ExpectStepsKept();
  }

  void ExpectStepsKept() const {
    ASSERT_FALSE(record_.Cells().empty());
    EXPECT_EQ(record_.Cells().front().part, "short");  // the finished cell, with its figures
    int of_long = 0;
    for (const StepLine& line : record_.steps) {
      of_long += line.at("part") == "long" ? 1 : 0;
    }
    EXPECT_GT(of_long, 4 * 10);
  }

  const std::string& verdict() const { return record_.summary.verdict; }

  TemporaryFolder folder_;
  std::string lab_;
  std::unique_ptr<Program> run_;
  Record record_;
};

TEST_F(Losses, AKilledWorkerOfARingIsNamed) {
  ASSERT_NO_FATAL_FAILURE(Start(kRing));
  SignalTo("worker", 2, SIGKILL);
  ExpectTheEnd("worker killed, ring", kClosed);
  EXPECT_THAT(verdict(), ContainsRegex("^worker 2 was lost in step [0-9]+ of long"));
  EXPECT_THAT(verdict(), HasSubstr("closed"));  // the evidence
}

TEST_F(Losses, AKilledWorkerOfAParameterServerIsNamed) {
  ASSERT_NO_FATAL_FAILURE(Start(kServers));
  SignalTo("worker", 3, SIGKILL);
  ExpectTheEnd("worker killed, ps", kClosed);
  EXPECT_THAT(verdict(), ContainsRegex("^worker 3 was lost in step [0-9]+ of long"));
}

TEST_F(Losses, AKilledServerIsNamed) {
  ASSERT_NO_FATAL_FAILURE(Start(kServers));
  SignalTo("ps", 1, SIGKILL);
  ExpectTheEnd("server killed", kClosed);
  EXPECT_THAT(verdict(), ContainsRegex("^server 1 was lost in step [0-9]+ of long"));
}

TEST_F(Losses, AKilledCoordinatorIsNamed) {
  ASSERT_NO_FATAL_FAILURE(Start(kRing));
  SignalTo("coordinator", -1, SIGKILL);
  ExpectTheEnd("coordinator killed", kClosed);
  EXPECT_THAT(verdict(), ContainsRegex("^the coordinator was lost in step [0-9]+ of long"));
  EXPECT_THAT(verdict(), HasSubstr("signal 9"));
}

TEST_F(Losses, ASilentWorkerIsNamed) {
  ASSERT_NO_FATAL_FAILURE(Start(kRing));
  SignalTo("worker", 1, SIGSTOP);
  ExpectTheEnd("worker stopped, ring", kSuspectAfter + Seconds(2) + kSlack);
  EXPECT_THAT(verdict(), ContainsRegex("^worker 1 was lost in step [0-9]+ of long"));
  EXPECT_THAT(verdict(), HasSubstr("no heartbeat for 2"));
}

TEST_F(Losses, ASilentServerIsNamed) {
  ASSERT_NO_FATAL_FAILURE(Start(kServers));
  SignalTo("ps", 0, SIGSTOP);
  ExpectTheEnd("server stopped", kSuspectAfter + Seconds(2) + kSlack);
  EXPECT_THAT(verdict(), ContainsRegex("^server 0 was lost in step [0-9]+ of long"));
}

TEST_F(Losses, ASilentCoordinatorIsNamed) {
  ASSERT_NO_FATAL_FAILURE(Start(kRing));
  SignalTo("coordinator", -1, SIGSTOP);
  ExpectTheEnd("coordinator stopped", kSuspectAfter + Seconds(3) + kSlack);
  EXPECT_THAT(verdict(), ContainsRegex("^the coordinator was lost in step [0-9]+ of long"));
  EXPECT_THAT(verdict(), HasSubstr("no answer for"));
}

TEST_F(Losses, CtrlCEndsTheRunAndKeepsWhatIsDone) {
  ASSERT_NO_FATAL_FAILURE(Start(kRing));
  run_->Signal(SIGINT);
  ExpectTheEnd("interrupted", kClosed);
  EXPECT_THAT(verdict(), HasSubstr("interrupted"));
}

TEST_F(Losses, WhoeverKillsTheRunTakesItsProcessesAlong) {
  ASSERT_NO_FATAL_FAILURE(Start(kServers));
  ASSERT_EQ(run_->Alive().size(), 1U + 1 + 4 + 2) << Describe(run_->Alive());
  run_->Signal(SIGKILL);
  EXPECT_EQ(Describe(run_->LeftAfter(kGone)), "");
  EXPECT_EQ(run_->Wait(Seconds(10)).exit_code, 128 + SIGKILL);
  EXPECT_EQ(ReadOneRecord(Out()).Cells().front().part, "short");  // written after each cell
}

}  // namespace
}  // namespace ranklab::cluster_test
