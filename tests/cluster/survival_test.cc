// on_loss: continue. A process of a parameter server's run is killed in the middle of training,
// from outside, and the run goes on without it.
#include <csignal>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/program.h"
#include "tests/cluster/record.h"
#include "tests/cluster/services.h"

namespace ranklab::cluster_test {
namespace {

using experiment::CellSummary;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr Seconds kUnderWay(90);  // until the part is in mid-run
constexpr Seconds kLimit(150);    // takes a few seconds on an idle machine

// The first part is the same training without a loss: the oracle of the second.
std::string LabOf(int servers, const std::string& exchange) {
  return R"(name: survival
seed: 3
model:   {kind: mlp, layers: [64, 64, 10]}
data:    {kind: digits}
train:   {steps: 1500, global_batch: 48, optimizer: momentum, momentum: 0.5, learning_rate: 0.02}
cluster: {workers: 3, servers: )" +
         std::to_string(servers) + R"(, device: cpu, on_loss: continue}
exchange: {kind: ps, bucket: 8KiB, first_bucket: 4KiB, )" +
         exchange + R"(}
parts: [{name: undisturbed}, {name: killed}]
)";
}

class Survival : public ::testing::Test {
 protected:
  // Kills a process once every worker is past step 20 of the second part; returns the exit code.
  int RunAndKill(const std::string& lab_text, const std::string& role, int rank) {
    const std::string lab = folder_.Write("lab.yaml", lab_text);
    run_ = std::make_unique<Program>(
        std::vector<std::string>{"run", lab, "--out", folder_.path() + "/out"});
    const auto in_mid_run = [this] {
      const ProcessSeen worker = run_->Find("worker", 0);
      return worker.pid != 0 && WorkersPast(20, "killed", worker.ValueOf("--coordinator")) == 3;
    };
    if (!WaitUntil(in_mid_run, kUnderWay)) {
      ADD_FAILURE() << run_->out() << run_->err();
      return -1;
    }
    const ProcessSeen victim = run_->Find(role, rank);
    EXPECT_NE(victim.pid, 0);
    kill(victim.pid, SIGKILL);
    return run_->Wait(kLimit).exit_code;
  }

  std::vector<CellSummary> Cells() const { return ReadOneRecord(folder_.path() + "/out").Cells(); }

  TemporaryFolder folder_;
  std::unique_ptr<Program> run_;
};

std::set<std::string> HashesOf(const CellSummary& cell) {
  return {cell.param_hashes.begin(), cell.param_hashes.end()};
}

class LostServer : public Survival, public testing::WithParamInterface<const char*> {};

// Bit for bit: no update that anybody was told of is lost, and none is there twice.
TEST_P(LostServer, TheReplicaGoesOnWithTheBitsOfARunWithoutALoss) {
  const std::string lab = LabOf(3, std::string("order: rank, transport: ") + GetParam());
  ASSERT_EQ(RunAndKill(lab, "ps", 1), 0) << run_->err();
  EXPECT_THAT(run_->err(), ContainsRegex("server 1 was lost in step [0-9]+ of killed.*; server 2 "
                                         "goes on with its shard"));
  const std::vector<CellSummary> cells = Cells();
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(HashesOf(cells[0]).size(), 1U);
  EXPECT_EQ(HashesOf(cells[0]), HashesOf(cells[1]));
}

INSTANTIATE_TEST_SUITE_P(Over, LostServer, testing::Values("tcp", "grpc"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(Survival, AnAsynchronousRunGoesOnWithAReplicaToo) {
  ASSERT_EQ(RunAndKill(LabOf(2, "staleness: 2"), "ps", 0), 0) << run_->err();
  const std::vector<CellSummary> cells = Cells();
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(HashesOf(cells[1]).size(), 1U) << "all ranks read the same at the end";
  EXPECT_LT(cells[1].final_loss, 0.5 * cells[1].initial_loss);
}

TEST_F(Survival, WithoutAReplicaTheVerdictSaysWhatIsLost) {
  EXPECT_EQ(RunAndKill(LabOf(1, "staleness: 0"), "ps", 0), 3);
  EXPECT_THAT(run_->err(), ContainsRegex("server 0 was lost in step [0-9]+ of killed"));
  EXPECT_THAT(run_->err(), HasSubstr("its part of the parameters is lost since the run began"));
}

TEST_F(Survival, ALostWorkerOpensTheGateForTheOthers) {
  ASSERT_EQ(RunAndKill(LabOf(2, "staleness: 0"), "worker", 1), 0) << run_->err();
  const std::vector<CellSummary> cells = Cells();
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells[1].workers, 3);
  EXPECT_EQ(cells[1].param_hashes.size(), 2U) << "of those that are left";
  EXPECT_EQ(HashesOf(cells[1]).size(), 1U);
  EXPECT_LT(cells[1].final_loss, 0.5 * cells[1].initial_loss);
}

}  // namespace
}  // namespace ranklab::cluster_test
