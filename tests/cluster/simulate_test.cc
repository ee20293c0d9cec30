// `ranklab simulate` and `ranklab compare` as a user meets them, and a lab that is half run, half
// simulated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/program.h"
#include "tests/cluster/record.h"

namespace ranklab::cluster_test {
namespace {

using experiment::CellSummary;
using experiment::FigureKind;
using ::testing::HasSubstr;

constexpr char kLab[] = R"(name: both
model:    {kind: mlp, layers: [64, 64, 10]}
data:     {kind: synthetic, samples: 65536}
train:    {steps: 4, batch_per_worker: 16, optimizer: sgd, learning_rate: 0.1}
cluster:  {workers: 2, device: cpu}
compute:  {model: a100}
exchange: {kind: collective, algorithm: ring}
fabric:   {preset: ib_ndr, time_scale: 1000}
parts:
  - name: live
  - name: wide
    simulate: true
    sweep: {cluster.workers: [2, 1024]}
    expect: [efficiency < 0.5 where cluster.workers = 1024, final_loss < 1]
)";

TEST(Simulate, ASimulatedPartStandsBesideWhatWasRun) {
  const TemporaryFolder folder;
  const std::string out = folder.path() + "/out";
  const Finished run =
      RunToEnd({"run", folder.Write("lab.yaml", kLab), "--out", out}, Seconds(100));
  ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  const Record record = ReadOneRecord(out);
  const std::vector<CellSummary> cells = record.Cells();
  ASSERT_EQ(cells.size(), 3U);
  EXPECT_EQ(cells[0].kind, FigureKind::kShaped);
  EXPECT_GT(cells[0].accuracy, 0);
  EXPECT_EQ(cells[1].kind, FigureKind::kModelled);
  EXPECT_EQ(cells[1].workers, 2);
  EXPECT_EQ(cells[2].workers, 1024);
  ASSERT_EQ(cells[2].findings.size(), 1U);
  EXPECT_EQ(cells[2].findings[0].code, "CLOSED_FORM");
  ASSERT_EQ(record.summary.expectations.size(), 2U);
  EXPECT_TRUE(record.summary.expectations[0].held);
  EXPECT_FALSE(record.summary.expectations[1].judged) << "nothing was trained";
}

// What these labs claim of times and bytes, where no machine's speed is in it.
TEST(Simulate, TheClaimsOfTheParameterServersLabsHold) {
  for (const char* lab : {"staleness", "incast"}) {
    SCOPED_TRACE(lab);
    const TemporaryFolder folder;
    const std::string out = folder.path() + "/out";
    const std::string file = std::string(RANKLAB_LABS) + "/" + lab + ".yaml";
    const Finished done = RunToEnd({"simulate", file, "--out", out}, Seconds(200));
    EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
    int judged = 0;
    for (const experiment::ExpectationOutcome& claim : ReadOneRecord(out).summary.expectations) {
      judged += claim.judged ? 1 : 0;
    }
    EXPECT_GE(judged, 4);
  }
}

TEST(Simulate, OneLabTwiceIsOneRecordAndAnotherNetworkIsNot) {
  const TemporaryFolder folder;
  const std::string lab = folder.Write("lab.yaml", kLab);
  const auto simulate = [&](const std::string& out, const std::string& preset) {
    const Finished done = RunToEnd(
        {"simulate", lab, "--set", "fabric.preset=" + preset, "--out", folder.path() + "/" + out},
        Seconds(60));
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return ReadOneRecord(folder.path() + "/" + out).folder;
  };
  const std::string one = simulate("one", "ib_ndr");
  const std::string other = simulate("other", "ib_ndr");
  const std::string slow = simulate("slow", "ethernet_1g");
  const Finished same = RunToEnd({"compare", one, other, "--within", "0.001%"}, Seconds(20));
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
  // Cells of another network are other cells; only the rows without an exchange are in both.
  const Finished different = RunToEnd({"compare", one, slow, "--within", "10%"}, Seconds(20));
  EXPECT_EQ(different.exit_code, 0) << different.err;
  EXPECT_THAT(different.out, HasSubstr("only A has figures of wide: ring, ib_ndr, 2 workers"));
}

TEST(Simulate, WhatHasNoSimulationIsSaid) {
  const TemporaryFolder folder;
  const std::string lab = folder.Write("lab.yaml", kLab);
  const Finished native = RunToEnd(
      {"simulate", lab, "--set", "compute.model=native", "--out", folder.path() + "/native"},
      Seconds(60));
  EXPECT_THAT(native.out, HasSubstr("NOT_SIMULATED"));
  const Finished servers = RunToEnd(
      {"simulate", lab, "--set", "exchange={kind: ps}", "--out", folder.path() + "/servers"},
      Seconds(60));
  EXPECT_THAT(servers.out, HasSubstr("more than the 128 that are played message by message"));
  const Finished only = RunToEnd({"run", folder.Write("only.yaml", R"(name: only
model:   {kind: mlp, layers: [64, 10]}
train:   {steps: 4, batch_per_worker: 8}
cluster: {workers: 2}
parts:   [{name: wide, simulate: true}]
)")},
                                 Seconds(20));
  EXPECT_EQ(only.exit_code, 2);
  EXPECT_THAT(only.err, HasSubstr("ranklab simulate"));
}

}  // namespace
}  // namespace ranklab::cluster_test
