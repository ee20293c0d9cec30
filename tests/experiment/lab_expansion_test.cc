// Parts, sweeps, overrides and baselines: which cells a lab becomes.
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/experiment/lab_support.h"

namespace ranklab::experiment {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// "ring/2" for each cell that is not a baseline.
std::vector<std::string> CellsOf(const Part& part) {
  std::vector<std::string> cells;
  for (const Cell& cell : part.cells) {
    if (!cell.baseline) {
      cells.push_back(cell.spec.ExchangeName() + "/" + std::to_string(cell.spec.cluster.workers));
    }
  }
  return cells;
}

std::vector<Cell> BaselinesOf(const Part& part) {
  std::vector<Cell> cells;
  for (const Cell& cell : part.cells) {
    if (cell.baseline) {
      cells.push_back(cell);
    }
  }
  return cells;
}

TEST(Sweep, TheFirstAxisIsTheSlowest) {
  const Lab lab = Read(
      Plus("sweep: {exchange: [{kind: ps}, {kind: collective}], cluster.workers: [1, 2, 4]}\n"));
  EXPECT_THAT(CellsOf(lab.parts[0]),
              ElementsAre("ps/1", "ps/2", "ps/4", "ring/1", "ring/2", "ring/4"));
  EXPECT_THAT(lab.parts[0].cells[4].settings,
              ElementsAre(Pair("exchange", "{kind: collective}"), Pair("cluster.workers", "2")));
  EXPECT_EQ(lab.parts[0].cells[4].index, 4);
}

TEST(Sweep, AListOfSeedsIsTheLastAxis) {
  const Lab lab = Read(Plus("seed: [5, 6]\nsweep: {cluster.workers: [1, 2]}\n"));
  std::vector<std::pair<int, std::uint64_t>> cells;
  for (const Cell& cell : lab.parts[0].cells) {
    if (!cell.baseline) {
      cells.emplace_back(cell.spec.cluster.workers, cell.spec.seed);
      EXPECT_EQ(cell.spec.scenario.seed, cell.spec.seed);
    }
  }
  EXPECT_THAT(cells, ElementsAre(Pair(1, 5U), Pair(1, 6U), Pair(2, 5U), Pair(2, 6U)));
}

TEST(Sweep, AnExchangeIsAWholeChoiceAndKeepsTheRestOfItsSection) {
  const Lab lab = Read(With("exchange", "exchange: {kind: ps, staleness: 4, bucket: 2MiB}") +
                       "sweep: {exchange: [{kind: ps}, {kind: collective, algorithm: ring}]}\n");
  const LabSpec& ps = lab.parts[0].cells[0].spec;
  EXPECT_EQ(std::get<ParameterServerSpec>(ps.exchange.kind).staleness_bound, 0);
  EXPECT_EQ(ps.exchange.bucket, 2 << 20);
  EXPECT_EQ(lab.parts[0].cells[1].spec.exchange.bucket, 2 << 20);
}

TEST(Sweep, ReachesIntoAChoiceMadeBefore) {
  const Lab lab = Read(Plus("sweep: {exchange: [{kind: ps}], exchange.staleness: [0, 2, none]}\n"));
  EXPECT_THAT(CellsOf(lab.parts[0]), ElementsAre("ps/2", "ps staleness 2/2", "ps async/2"));
}

TEST(Parts, OverrideSingleKeysAndInheritTheRest) {
  const Lab lab = Read(Plus(R"(
repeats: 3
expect: [accuracy > 0.5]
parts:
  - name: first
    with: {train: {learning_rate: 0.5}}
  - name: second
    with: {train: {batch_per_worker: 16}, fabric: {preset: native}}
    repeats: 1
    expect: []
    scenario: [{at_step: 4, rank: 1, kill: true}]
)"));
  ASSERT_THAT(lab.parts, SizeIs(2));
  EXPECT_EQ(lab.parts[0].repeats, 3);
  EXPECT_EQ(lab.parts[1].repeats, 1);
  EXPECT_THAT(lab.parts[0].expect, SizeIs(1));
  EXPECT_THAT(lab.parts[1].expect, IsEmpty());
  const LabSpec& first = lab.parts[0].cells[0].spec;
  EXPECT_EQ(first.train.learning_rate, 0.5);
  EXPECT_EQ(first.train.steps, 10);
  EXPECT_EQ(first.train.global_batch, 64);
  EXPECT_EQ(first.fabric.preset, "pcie4_x16");
  EXPECT_THAT(first.scenario.injections, IsEmpty());
  const LabSpec& second = lab.parts[1].cells[0].spec;
  EXPECT_EQ(second.train.global_batch, 0) << "displaced";
  EXPECT_EQ(second.train.batch_per_worker, 16);
  EXPECT_TRUE(second.fabric.native());
  EXPECT_THAT(second.scenario.injections, SizeIs(1));
  EXPECT_EQ(second.scenario.name, "second");
}

TEST(Overrides, ActLastAndOnEveryPart) {
  const Lab lab = Read(Plus(R"(
parts:
  - {name: a, with: {train: {steps: 20}}, repeats: 2}
  - {name: b, with: {train: {steps: 30}}, sweep: {train.learning_rate: [0.1, 0.2]}}
)"),
                       {"train.steps=40", "repeats=4", "name=renamed"});
  EXPECT_EQ(lab.name, "renamed");
  for (const Part& part : lab.parts) {
    EXPECT_EQ(part.repeats, 4);
    for (const Cell& cell : part.cells) {
      EXPECT_EQ(cell.spec.train.steps, 40);
    }
  }
}

TEST(Overrides, EndTheSweepOfTheirPath) {
  const std::string swept =
      Plus("sweep: {exchange: [{kind: ps}, {kind: collective}], cluster.workers: [1, 2, 4]}\n");
  EXPECT_THAT(CellsOf(Read(swept, {"cluster.workers=3"}).parts[0]), ElementsAre("ps/3", "ring/3"));
  EXPECT_THAT(CellsOf(Read(swept, {"exchange={kind: ps, staleness: 1}"}).parts[0]),
              ElementsAre("ps staleness 1/1", "ps staleness 1/2", "ps staleness 1/4"));
  EXPECT_THAT(CellsOf(Read(swept, {"exchange.kind=ps"}).parts[0]),
              ElementsAre("ps/1", "ps/2", "ps/4"))
      << "values that become equal are one";
}

TEST(Overrides, ASeedOrAListOfSeeds) {
  const std::string seeds = Plus("seed: [1, 2, 3]\n");
  EXPECT_THAT(CellsOf(Read(seeds).parts[0]), SizeIs(3));
  EXPECT_THAT(CellsOf(Read(seeds, {"seed=9"}).parts[0]), SizeIs(1));
  EXPECT_EQ(Read(seeds, {"seed=9"}).parts[0].cells[0].spec.seed, 9U);
  EXPECT_THAT(CellsOf(Read(kSmall, {"seed=[4, 5]"}).parts[0]), SizeIs(2));
}

TEST(Overrides, ABatchDisplacesTheOtherEvenWhereItIsSwept) {
  const Lab lab =
      Read(Plus("sweep: {train.global_batch: [32, 64]}\n"), {"train.batch_per_worker=8"});
  EXPECT_THAT(CellsOf(lab.parts[0]), ElementsAre("ring/2"));
  EXPECT_EQ(lab.parts[0].cells[0].spec.GlobalBatch(), 16);
}

TEST(Baselines, OneForEachBatchOfAWorker) {
  const Lab lab = Read(
      Plus("sweep: {exchange: [{kind: ps}, {kind: collective}], cluster.workers: [1, 2, 4]}\n"));
  const Part& part = lab.parts[0];
  const std::vector<Cell> baselines = BaselinesOf(part);
  ASSERT_THAT(baselines, SizeIs(3)) << "strong scaling: 64, 32 and 16 samples a worker";
  for (const Cell& baseline : baselines) {
    EXPECT_TRUE(std::holds_alternative<NoExchange>(baseline.spec.exchange.kind));
    EXPECT_EQ(baseline.spec.cluster.workers, 1);
    EXPECT_EQ(baseline.spec.cluster.servers, 0);
    EXPECT_EQ(baseline.baseline_index, -1);
    EXPECT_GE(baseline.index, 6) << "last";
  }
  for (const Cell& cell : part.cells) {
    if (!cell.baseline) {
      const Cell& alone = part.cells[static_cast<std::size_t>(cell.baseline_index)];
      EXPECT_EQ(alone.spec.BatchOf(0), cell.spec.BatchOf(0));
    }
  }
}

TEST(Baselines, WeakScalingOverNetworksAndSeedsSharesOne) {
  const Lab lab =
      Read(With("train", "train: {steps: 10, batch_per_worker: 16}") +
           "compute: {model: a100}\nseed: [1, 2]\n"
           "scenario: [{at_step: 5, rank: 0, slow: {factor: 2}}]\n"
           "sweep: {fabric.preset: [nvlink4, ethernet_10g], cluster.workers: [1, 2, 4]}\n");
  const std::vector<Cell> baselines = BaselinesOf(lab.parts[0]);
  ASSERT_THAT(baselines, SizeIs(1));
  EXPECT_EQ(baselines[0].spec.compute.model, "a100");
  EXPECT_THAT(baselines[0].spec.scenario.injections, IsEmpty());
  EXPECT_THAT(baselines[0].settings, ElementsAre(Pair("train.batch_per_worker", "16")));
}

TEST(Parts, OneMaySayThatItIsSimulated) {
  const std::string text = With("train", "train: {steps: 10, batch_per_worker: 16}") +
                           "parts:\n"
                           "  - {name: live}\n"
                           "  - {name: wide, simulate: true, with: {cluster: {workers: 64}}}\n";
  const Lab lab = Read(text);
  EXPECT_FALSE(lab.parts[0].simulated);
  EXPECT_TRUE(lab.parts[1].simulated);
  EXPECT_THAT(Refusal(text, {"cluster.workers=all"}), ::testing::HasSubstr("wide is simulated"));
}

TEST(Baselines, ARowThatTheLabHasIsUsed) {
  const Lab lab = Read(With("train", "train: {steps: 10, batch_per_worker: 16}") + R"(
parts:
  - {name: alone, with: {exchange: {kind: none}, cluster: {workers: 1}}}
  - name: both
    with: {cluster: {workers: 1}, fabric: {preset: native}}
    sweep: {exchange: [{kind: none}, {kind: ps}]}
)");
  EXPECT_THAT(lab.parts[0].cells, SizeIs(1));
  ASSERT_THAT(lab.parts[1].cells, SizeIs(2));
  EXPECT_EQ(lab.parts[1].cells[1].baseline_index, 0);
}

TEST(Baselines, AllWorkersOfThePoolHaveOneToo) {
  const Lab lab =
      Read(With("train", "train: {steps: 10, batch_per_worker: 16}"), {"cluster.workers=all"});
  EXPECT_EQ(lab.parts[0].cells[0].spec.cluster.workers, 0);
  ASSERT_THAT(BaselinesOf(lab.parts[0]), SizeIs(1));
  EXPECT_EQ(BaselinesOf(lab.parts[0])[0].spec.cluster.workers, 1);
}

TEST(Scenario, EntriesAreOrderedByStep) {
  const Lab lab =
      Read(Plus("scenario: [{at_step: 8, reset: true}, {at_step: 3, rank: 1, pause: 1ms}]\n"));
  const auto& injections = lab.parts[0].cells[0].spec.scenario.injections;
  ASSERT_THAT(injections, SizeIs(2));
  EXPECT_EQ(injections[0].at_step, 3);
  EXPECT_EQ(injections[1].at_step, 8);
}

}  // namespace
}  // namespace ranklab::experiment
