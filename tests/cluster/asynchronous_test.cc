// Asynchronous runs end by samples, not by steps of a rank, never read staler parameters than the
// bound allows, and leave every rank with the same parameters.
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "tests/cluster/program.h"
#include "tests/cluster/record.h"

namespace ranklab::cluster_test {
namespace {

using experiment::CellSummary;

constexpr Seconds kLimit(150);  // takes a few seconds on an idle machine
constexpr std::int64_t kSteps = 60;
constexpr std::int64_t kGlobalBatch = 240;
constexpr double kTrainingSamples = 1437;  // of digits

Record RunLab(const std::string& staleness, const std::string& more = "") {
  const TemporaryFolder folder;
  const std::string lab = folder.Write("lab.yaml", R"(name: asynchronous
seed: 3
model:   {kind: mlp, layers: [64, 64, 10]}
data:    {kind: digits}
train:   {steps: 60, global_batch: 240, learning_rate: 0.5}
cluster: {workers: 4, servers: 2, device: cpu}
exchange: {kind: ps, staleness: )" + staleness + "}\n" +
                                                       more);
  const Finished run = RunToEnd({"run", lab, "--out", folder.path() + "/out"}, kLimit);
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  return ReadOneRecord(folder.path() + "/out");
}

void ExpectSamplesAndPasses(const CellSummary& cell) {
  ASSERT_EQ(cell.samples_per_rank.size(), 4U);
  ASSERT_EQ(cell.passes_per_rank.size(), 4U);
  const std::int64_t samples =
      std::accumulate(cell.samples_per_rank.begin(), cell.samples_per_rank.end(), std::int64_t{0});
  EXPECT_GE(samples, kSteps * kGlobalBatch);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_GT(cell.samples_per_rank[rank], 0) << "rank " << rank;
    EXPECT_NEAR(cell.passes_per_rank[rank],
                static_cast<double>(cell.samples_per_rank[rank]) / kTrainingSamples, 1e-6)
        << "rank " << rank;
  }
}

void ExpectOneHash(const CellSummary& cell) {
  const std::set<std::string> hashes(cell.param_hashes.begin(), cell.param_hashes.end());
  EXPECT_EQ(cell.param_hashes.size(), 4U);
  EXPECT_EQ(hashes.size(), 1U);
  EXPECT_FALSE(hashes.contains(""));
}

// What steps.csv says of each rank adds up to what the summary says.
void ExpectTheSameSamplesInTheSteps(const Record& record, const CellSummary& cell) {
  for (int rank = 0; rank < 4; ++rank) {
    std::int64_t samples = 0;
    for (const StepLine& line : record.StepsOf(rank)) {
      samples += line.at("part") == cell.part && std::stoi(line.at("cell")) == cell.cell
                     ? std::stoll(line.at("samples"))
                     : 0;
    }
    EXPECT_EQ(samples, cell.samples_per_rank[static_cast<std::size_t>(rank)]) << "rank " << rank;
  }
}

TEST(Asynchronous, ABoundOfTwoIsKeptAgainstASlowRank) {
  const Record record =
      RunLab("2", "scenario: [{at_step: 1, rank: 3, slow: {phase: backward, extra: 5ms}}]\n");
  ASSERT_EQ(record.Cells().size(), 1U);
  const CellSummary cell = record.Cells().front();
  EXPECT_EQ(cell.exchange, "ps staleness 2");
  ExpectSamplesAndPasses(cell);
  ExpectOneHash(cell);
  ExpectTheSameSamplesInTheSteps(record, cell);
  ASSERT_FALSE(cell.staleness.empty());
  EXPECT_LE(cell.staleness.rbegin()->first, 2);
  EXPECT_GT(cell.staleness.rbegin()->first, 0) << "nobody ran ahead of a slow rank";
  for (const StepLine& line : record.steps) {
    EXPECT_LE(std::stoll(line.at("staleness")), 2);
  }
}

TEST(Asynchronous, WithoutABoundTheFastRanksDoTheWork) {
  const Record record =
      RunLab("none", "scenario: [{at_step: 1, rank: 3, slow: {phase: backward, extra: 50ms}}]\n");
  ASSERT_EQ(record.Cells().size(), 1U);
  const CellSummary cell = record.Cells().front();
  EXPECT_EQ(cell.exchange, "ps async");
  ExpectSamplesAndPasses(cell);
  ExpectOneHash(cell);
  ExpectTheSameSamplesInTheSteps(record, cell);
  ASSERT_FALSE(cell.staleness.empty());
  EXPECT_GT(cell.staleness.rbegin()->first, 2) << "a bound of 2 would have been kept";
  const std::int64_t slow = cell.samples_per_rank[3];
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_GT(cell.samples_per_rank[static_cast<std::size_t>(rank)], slow) << "rank " << rank;
  }
}

// One worker has nobody to be stale against: dividing the rate by the number of workers makes an
// asynchronous run of one worker the synchronous one, and of four a slower learner by the step.
TEST(Asynchronous, TheRateIsDividedByTheNumberOfWorkersAndSaidSo) {
  const Record one = RunLab("none",
                            "sweep: {exchange.staleness: [0, none]}\n"
                            "parts: [{name: one, with: {cluster: {workers: 1}}}]\n");
  ASSERT_EQ(one.Cells().size(), 2U);
  EXPECT_EQ(one.Cells()[0].param_hashes, one.Cells()[1].param_hashes);
  const Record four = RunLab("none");
  std::string said;
  const CellSummary cell = four.Cells().front();
  for (const experiment::Finding& finding : cell.findings) {
    said += finding.text + "\n";
  }
  EXPECT_NE(said.find("divided by the 4 workers"), std::string::npos) << said;
}

}  // namespace
}  // namespace ranklab::cluster_test
