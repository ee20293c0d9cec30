// The same lab and seed give the same training, whatever carries the gradients: one process with
// the global batch is the oracle for every synchronous exchange.
#include <cmath>
#include <map>
#include <set>

#include <absl/strings/str_format.h>
#include <gtest/gtest.h>

#include "collectives/schedule/catalog.h"
#include "tests/cluster/program.h"
#include "tests/cluster/record.h"

namespace ranklab::cluster_test {
namespace {

using experiment::CellSummary;

constexpr Seconds kLimit(150);       // takes 2 s on an idle machine
constexpr double kTolerance = 1e-5;  // relative, a step: sums in another order

// Small buckets, so that there are three. 250 samples are uneven shares for 3 and 4 workers.
constexpr char kHead[] = R"(name: truth
seed: 3
model:   {kind: mlp, layers: [64, 64, 10]}
data:    {kind: digits}
train:   {steps: 50, global_batch: 250, learning_rate: 0.5}
cluster: {workers: 4, servers: 2, device: cpu}
exchange: {bucket: 32KiB, first_bucket: 4KiB}
)";

// Sequences of 3 to 8 tokens: the targets of ranks and micro-batches are uneven. Rate and epsilon
// are such that AdamW does not turn the rounding of gradients near 0 into steps.
constexpr char kGptHead[] = R"(name: truth
seed: 3
model:   {kind: gpt, layers: 2, hidden: 32, heads: 2, context: 8}
data:    {kind: grammar, vocabulary: 4, branching: 2, samples: 256, shortest: 3}
train:   {steps: 50, global_batch: 32, optimizer: adamw, learning_rate: 0.002, epsilon: 1e-5,
          ramp_steps: 10, schedule: cosine}
cluster: {workers: 4, servers: 2, device: cpu}
exchange: {bucket: 32KiB, first_bucket: 4KiB}
)";

Record RunLab(const std::string& parts, const std::string& head = kHead) {
  const TemporaryFolder folder;
  const std::string lab = folder.Write("lab.yaml", head + parts);
  const Finished run = RunToEnd({"run", lab, "--out", folder.path() + "/out"}, kLimit);
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  return ReadOneRecord(folder.path() + "/out");
}

std::string NameOf(const CellSummary& cell) {
  return cell.part + ", " + cell.exchange + " over " + cell.transport + ", " +
         std::to_string(cell.workers) + " workers, cell " + std::to_string(cell.cell);
}

void ExpectSameCurve(const CellSummary& cell, const CellSummary& oracle) {
  ASSERT_EQ(cell.loss_curve.size(), oracle.loss_curve.size());
  for (std::size_t step = 0; step < oracle.loss_curve.size(); ++step) {
    EXPECT_NEAR(cell.loss_curve[step], oracle.loss_curve[step],
                kTolerance * std::abs(oracle.loss_curve[step]))
        << "step " << step + 1;
  }
  EXPECT_NEAR(cell.final_loss, oracle.final_loss, kTolerance * oracle.final_loss);
}

void ExpectOneHash(const CellSummary& cell) {
  EXPECT_EQ(cell.param_hashes.size(), static_cast<std::size_t>(cell.workers));
  const std::set<std::string> hashes(cell.param_hashes.begin(), cell.param_hashes.end());
  EXPECT_EQ(hashes.size(), 1U);
  EXPECT_FALSE(hashes.contains(""));
  EXPECT_TRUE(cell.hash_equal_across_ranks);
}

// The first cell is the oracle. It learns, since curves that stand still would agree too: at most
// the share `left` of its first loss, over the least there is, is left at the end.
void ExpectOneTruth(const Record& record, std::size_t count, double left = 0.5) {
  const std::vector<CellSummary> cells = record.Cells();
  ASSERT_EQ(cells.size(), count);
  const CellSummary& oracle = cells.front();
  ASSERT_EQ(oracle.exchange, "none");
  ASSERT_EQ(oracle.loss_curve.size(), 50U);
  const double floor = oracle.loss_floor;
  EXPECT_LT(oracle.loss_curve.back() - floor, left * (oracle.loss_curve.front() - floor));
  for (const CellSummary& cell : cells) {
    SCOPED_TRACE(NameOf(cell));
    ExpectSameCurve(cell, oracle);
    ExpectOneHash(cell);
  }
}

// Parts: one process, then each exchange over the given transport with 1 to 4 workers.
Record RunOver(const std::string& transport, const std::string& exchanges) {
  return RunLab(R"(parts:
  - name: alone
    with: {cluster: {workers: 1}, exchange: {kind: none}}
  - name: together
    with: {exchange: {transport: )" +
                transport + R"(}}
    sweep: {exchange: )" +
                exchanges + R"(, cluster.workers: [1, 2, 3, 4]}
)");
}

constexpr char kRing[] = "[{kind: collective, algorithm: ring}]";
constexpr char kServers[] = "[{kind: ps, order: rank}, {kind: ps, order: arrival}]";

TEST(OneTruth, RingOverTcpLearnsAsOneProcessDoes) { ExpectOneTruth(RunOver("tcp", kRing), 1 + 4); }

// Sums in other orders than the ring's; three workers are no power of two.
TEST(OneTruth, EveryAllReduceLearnsAsOneProcessDoes) {
  std::string exchanges;
  std::size_t count = 0;
  for (const collectives::CatalogEntry& entry : collectives::Catalog()) {
    if (entry.collective == collectives::Collective::kAllReduce) {
      exchanges += absl::StrFormat("%s{kind: collective, algorithm: %s}", count == 0 ? "" : ", ",
                                   entry.name);
      ++count;
    }
  }
  ExpectOneTruth(RunLab(R"(parts:
  - name: alone
    with: {cluster: {workers: 1}, exchange: {kind: none}}
  - name: together
    sweep: {exchange: [)" +
                        exchanges +
                        R"(], cluster.workers: [3, 4]}
)"),
                 1 + 2 * count);
}

TEST(OneTruth, RingThroughSharedMemoryLearnsAsOneProcessDoes) {
  ExpectOneTruth(RunOver("shm", kRing), 1 + 4);
}

TEST(OneTruth, RingOverGrpcLearnsAsOneProcessDoes) {
  ExpectOneTruth(RunOver("grpc", kRing), 1 + 4);
}

TEST(OneTruth, SynchronousParameterServerOverTcpLearnsAsOneProcessDoes) {
  ExpectOneTruth(RunOver("tcp", kServers), 1 + 8);
}

TEST(OneTruth, SynchronousParameterServerOverGrpcLearnsAsOneProcessDoes) {
  ExpectOneTruth(RunOver("grpc", kServers), 1 + 8);
}

TEST(OneTruth, MicroBatchesLearnAsWholeBatchesDo) {
  ExpectOneTruth(RunLab(R"(parts:
  - name: alone
    with: {cluster: {workers: 1}, exchange: {kind: none}}
  - name: accumulated
    with: {train: {accumulate: 3}}
    sweep:
      exchange: [{kind: collective, algorithm: ring}, {kind: ps, order: rank}]
      cluster.workers: [1, 4]
  - name: unoverlapped
    with: {train: {accumulate: 3}, exchange: {overlap: false}}
    sweep: {exchange: [{kind: collective, algorithm: ring}, {kind: ps}]}
)"),
                 1 + 4 + 2);
}

TEST(OneTruth, AGptLearnsTheSameOverEveryExchangeAndInMicroBatches) {
  ExpectOneTruth(RunLab(R"(parts:
  - name: alone
    with: {cluster: {workers: 1}, exchange: {kind: none}}
  - name: together
    sweep:
      exchange: [{kind: collective, algorithm: ring}, {kind: ps, order: rank}, {kind: ps}]
      cluster.workers: [1, 3, 4]
  - name: accumulated
    with: {train: {accumulate: 3, recompute: true}}
    sweep: {exchange: [{kind: collective, algorithm: ring}, {kind: ps}]}
)",
                        kGptHead),
                 1 + 9 + 2, /*left=*/0.7);
}

TEST(OneTruth, RingAndRankOrderGiveTheSameHashInEveryRun) {
  constexpr char kParts[] = R"(repeats: 2
sweep:
  exchange: [{kind: collective, algorithm: ring}, {kind: ps, order: rank}]
  exchange.transport: [tcp, grpc, shm]
)";
  const std::vector<CellSummary> first = RunLab(kParts).Cells();
  const std::vector<CellSummary> second = RunLab(kParts).Cells();
  ASSERT_EQ(first.size(), 6U);
  ASSERT_EQ(second.size(), 6U);
  for (std::size_t i = 0; i < first.size(); ++i) {
    SCOPED_TRACE(NameOf(first[i]));
    ExpectOneHash(first[i]);
    EXPECT_TRUE(first[i].hash_equal_across_repeats);
    EXPECT_TRUE(second[i].hash_equal_across_repeats);
    EXPECT_EQ(first[i].param_hashes, second[i].param_hashes);
  }
}

// 1437 = 4 x 359 + 1: the fifth batch of an epoch has one sample, so three of four ranks have none.
TEST(OneTruth, AShortLastBatchIsReportedAndNoSampleIsLost) {
  const Record record = RunLab(R"(parts:
  - name: alone
    with: {train: {steps: 15, global_batch: 359}, cluster: {workers: 1}, exchange: {kind: none}}
  - name: together
    with: {train: {steps: 15, global_batch: 359}}
    sweep: {exchange: [{kind: collective, algorithm: ring}, {kind: ps}]}
)");
  const std::vector<CellSummary> cells = record.Cells();
  ASSERT_EQ(cells.size(), 3U);
  for (const CellSummary& cell : cells) {
    SCOPED_TRACE(NameOf(cell));
    ExpectSameCurve(cell, cells.front());
    ExpectOneHash(cell);
    std::map<std::string, std::int64_t> of_epoch;
    std::map<std::string, std::int64_t> of_step;
    for (const StepLine& line : record.steps) {
      if (line.at("part") == cell.part && line.at("cell") == std::to_string(cell.cell)) {
        of_epoch[line.at("epoch")] += std::stoll(line.at("samples"));
        of_step[line.at("step")] += std::stoll(line.at("samples"));
      }
    }
    EXPECT_EQ(of_epoch.size(), 3U);
    for (const auto& [epoch, samples] : of_epoch) {
      EXPECT_EQ(samples, 1437) << "epoch " << epoch;
    }
    EXPECT_EQ(of_step["4"], 359);
    EXPECT_EQ(of_step["5"], 1);
  }
}

TEST(OneTruth, AnotherSeedIsAnotherTraining) {
  const std::vector<CellSummary> cells = RunLab("sweep: {seed: [3, 4]}\n").Cells();
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_NE(cells[0].param_hashes, cells[1].param_hashes);
  EXPECT_NE(cells[0].loss_curve, cells[1].loss_curve);
}

}  // namespace
}  // namespace ranklab::cluster_test
