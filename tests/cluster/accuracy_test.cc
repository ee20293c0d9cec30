// Every synchronous exchange reaches 95 % on digits, as a mean over seeds, in the settings of the
// lab that the demo runs.
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "tests/cluster/program.h"
#include "tests/cluster/record.h"

namespace ranklab::cluster_test {
namespace {

using experiment::CellSummary;

constexpr Seconds kLimit(200);  // takes 25 s on an idle machine

// labs/compare.yaml without its other parts: its settings, so that the two cannot drift.
std::string LearnPartOfTheDemo() {
  YAML::Node lab = YAML::LoadFile(RANKLAB_LABS "/compare.yaml");
  YAML::Node learn;
  for (const YAML::Node& part : lab["parts"]) {
    if (part["name"].as<std::string>() == "learn") {
      learn.push_back(part);
    }
  }
  EXPECT_EQ(learn.size(), 1U) << "compare.yaml has no part `learn`";
  lab["parts"] = learn;
  return YAML::Dump(lab);
}

// Two workers: how many there are changes a synchronous exchange by rounding only (one_truth_test).
TEST(Accuracy, OfEverySynchronousExchangeIs95PercentOverFiveSeeds) {
  const TemporaryFolder folder;
  const std::string lab = folder.Write("learn.yaml", LearnPartOfTheDemo());
  const Finished run =
      RunToEnd({"run", lab, "--out", folder.path() + "/out", "--set", "seed=[1, 2, 3, 4, 5]",
                "--set", "cluster.workers=2", "--set", "repeats=1", "--set", "expect=[]"},
               kLimit);
  ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  std::map<std::string, std::vector<double>> accuracies;
  for (const CellSummary& cell : ReadOneRecord(folder.path() + "/out").Cells()) {
    EXPECT_TRUE(cell.hash_equal_across_ranks) << cell.exchange << ", seed " << cell.seed;
    EXPECT_EQ(cell.workers, 2);
    std::printf("%s, seed %d: accuracy %.4f, final loss %.4f\n", cell.exchange.c_str(),
                static_cast<int>(cell.seed), cell.accuracy, cell.final_loss);
    accuracies[cell.exchange].push_back(cell.accuracy);
  }
  ASSERT_EQ(accuracies.size(), 2U);
  for (const char* exchange : {"ps", "ring"}) {
    ASSERT_EQ(accuracies[exchange].size(), 5U) << exchange;
    double sum = 0;
    for (const double accuracy : accuracies[exchange]) {
      sum += accuracy;
    }
    EXPECT_GE(sum / 5, 0.95) << exchange;
  }
}

}  // namespace
}  // namespace ranklab::cluster_test
