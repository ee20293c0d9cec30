// bf16 and fp16 in a cluster: they learn, every rank ends with the same bits, and an overflow on
// any rank skips the step on all, whatever carries the gradients.
#include <cmath>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/cluster/program.h"
#include "tests/cluster/record.h"

namespace ranklab::cluster_test {
namespace {

using experiment::CellSummary;

constexpr Seconds kLimit(150);  // each takes a few seconds on an idle machine

Record RunLab(const std::string& text) {
  const TemporaryFolder folder;
  const std::string lab = folder.Write("lab.yaml", text);
  const Finished run = RunToEnd({"run", lab, "--out", folder.path() + "/out"}, kLimit);
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  return ReadOneRecord(folder.path() + "/out");
}

// 95 % of the digits in either precision, over either wire; 100 samples are uneven shares. Beside
// each other, a ring and a parameter server differ by rounding alone.
TEST(MixedPrecision, LearnsTheDigitsWithARingAndWithAParameterServer) {
  const Record record = RunLab(R"(name: learn
seed: 1
model:   {kind: mlp, layers: [64, 128, 10]}
data:    {kind: digits}
train:   {steps: 150, global_batch: 100, learning_rate: 0.1, optimizer: momentum}
cluster: {workers: 3, servers: 2, device: cpu}
exchange: {bucket: 32KiB, first_bucket: 4KiB}
sweep:
  train.precision: [bf16, fp16]
  exchange: [{kind: collective, algorithm: ring}, {kind: ps}]
  exchange.wire_dtype: [fp32, bf16, fp16]
expect:  [accuracy > 0.95, param_hash equal across ranks]
)");
  std::map<std::string, std::map<std::string, double>> losses;  // dtypes -> exchange -> loss
  for (const CellSummary& cell : record.Cells()) {
    losses[cell.precision + " over " + cell.wire_dtype][cell.exchange] = cell.final_loss;
  }
  ASSERT_EQ(losses.size(), 6U);
  for (const auto& [dtypes, loss] : losses) {
    EXPECT_NEAR(loss.at("ring"), loss.at("ps"), 0.05 * loss.at("ps")) << dtypes;
  }
}

// What the ranks say of a step, by cell and step: all the same.
std::map<std::string, std::set<std::string>> ScalesOf(const Record& record) {
  std::map<std::string, std::set<std::string>> said;
  for (const StepLine& line : record.steps) {
    if (record.Cells().front().part == line.at("part") && std::stoi(line.at("cell")) < 3) {
      said[line.at("cell") + "/" + line.at("step")].insert(line.at("loss_scale") + " " +
                                                           line.at("skipped"));
    }
  }
  return said;
}

// The batch is small and the rate is too, so that nothing overflows by itself after the first
// steps.
TEST(MixedPrecision, AnOverflowOnOneRankSkipsTheStepOnAllAndHalvesTheScale) {
  const Record record = RunLab(R"(name: overflow
seed: 3
model:   {kind: mlp, layers: [64, 64, 10]}
data:    {kind: digits}
train:   {steps: 30, global_batch: 6, learning_rate: 0.001, precision: fp16}
cluster: {workers: 3, servers: 2, device: cpu}
exchange: {bucket: 32KiB, first_bucket: 4KiB}
sweep:   {exchange: [{kind: collective, algorithm: ring}, {kind: ps, order: rank}, {kind: ps}]}
scenario: [{at_step: 20, until_step: 21, rank: 1, nan: true}]
expect:  [skipped_steps >= 2, skipped_steps < 15, param_hash equal across ranks]
)");
  const auto said = ScalesOf(record);
  ASSERT_EQ(said.size(), 3U * 30);
  for (const auto& [step, of_ranks] : said) {
    EXPECT_EQ(of_ranks.size(), 1U) << step;
  }
  for (const std::string cell : {"0", "1", "2"}) {
    const auto scale = [&](int step) {
      return std::stod(*said.at(cell + "/" + std::to_string(step)).begin());
    };
    EXPECT_EQ(scale(1), 65536);
    EXPECT_EQ(scale(21), scale(20) / 2) << "cell " << cell;
    EXPECT_EQ(scale(22), scale(20) / 4) << "cell " << cell;
    EXPECT_EQ(scale(23), scale(22)) << "cell " << cell;
  }
  for (const CellSummary& cell : record.Cells()) {
    EXPECT_TRUE(std::isfinite(cell.final_loss)) << cell.exchange;
  }
}

}  // namespace
}  // namespace ranklab::cluster_test
