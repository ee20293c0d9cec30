// Figures of cells from steps whose times are chosen so that the right answer is known by hand.
#include "experiment/summarize.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/status.h"
#include "experiment/findings.h"
#include "experiment/lab_reader.h"

namespace ranklab::experiment {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

Nanos Ms(double ms) { return Nanos(static_cast<std::int64_t>(ms * 1e6)); }

Lab ReadOne(const std::string& more) {
  auto lab = ReadLab(
      "name: t\nmodel: {kind: mlp, layers: [64, 10]}\n"
      "train: {steps: 4, warmup_steps: 1, batch_per_worker: 8}\n" +
          more,
      "t.yaml", {});
  EXPECT_TRUE(lab.ok()) << MessageOf(lab.status());
  return lab.ok() ? *std::move(lab) : Lab{};
}

struct StepOf {
  Step step;
  double begins_ms;
  double ms;
};

std::vector<StepRecord> Steps(const std::vector<StepOf>& steps) {
  std::vector<StepRecord> records;
  for (const StepOf& step : steps) {
    records.push_back({.step = step.step,
                       .samples = 8,
                       .loss_sum = 8.0 / static_cast<double>(step.step),
                       .weight = 8,
                       .begins = Ms(step.begins_ms),
                       .step_time = Ms(step.ms),
                       .forward = Ms(step.ms / 4),
                       .backward = Ms(step.ms / 4),
                       .exposed = Ms(step.ms / 4),
                       .bytes_sent = 1000});
  }
  return records;
}

CellRun RunOf(int cell, int repeat, std::vector<std::vector<StepRecord>> steps) {
  CellRun run{.cell = cell, .repeat = repeat, .steps = std::move(steps), .cores = 8};
  for (std::size_t rank = 0; rank < run.steps.size(); ++rank) {
    run.workers.push_back({.param_hash = "h", .final_loss = 0.5, .accuracy = 0.9, .samples = 32});
  }
  return run;
}

TEST(Summarize, ASynchronousStepTakesWhatItsSlowestRankTakes) {
  const Lab lab = ReadOne("cluster: {workers: 2}\n");
  // Slowest: 100 (warm-up, not counted), 12, 20, 14 ms: the median is 14.
  const CellRun run = RunOf(0, 1,
                            {Steps({{1, 0, 100}, {2, 100, 10}, {3, 112, 20}, {4, 132, 10}}),
                             Steps({{1, 0, 50}, {2, 100, 12}, {3, 112, 11}, {4, 132, 14}})});
  const auto cells = Summarize(lab, std::vector<CellRun>{run});
  ASSERT_THAT(cells, SizeIs(1));
  const CellSummary& cell = cells[0];
  EXPECT_EQ(cell.exchange, "ring");
  EXPECT_EQ(cell.workers, 2);
  EXPECT_EQ(cell.counted_steps, 3);
  EXPECT_THAT(cell.step_seconds.median, DoubleNear(0.014, 1e-12));
  EXPECT_THAT(cell.samples_per_second.median, DoubleNear(16 / 0.014, 1e-9));
  EXPECT_EQ(cell.bytes_sent_per_step, 1000);
  EXPECT_EQ(cell.efficiency, 0) << "the baseline was not run";
  EXPECT_THAT(cell.loss_curve, ElementsAre(1.0, 0.5, DoubleEq(1.0 / 3), 0.25));
  EXPECT_THAT(cell.loss_seconds, ElementsAre(DoubleNear(0.1, 1e-12), DoubleNear(0.112, 1e-12),
                                             DoubleNear(0.132, 1e-12), DoubleNear(0.146, 1e-12)));
  EXPECT_EQ(cell.initial_loss, 1.0);
  EXPECT_EQ(cell.kind, FigureKind::kMeasured);
}

TEST(Summarize, TimesAreModelled) {
  const Lab lab =
      ReadOne("cluster: {workers: 1}\nfabric: {preset: nvlink4}\ncompute: {model: a100}\n");
  CellRun run = RunOf(0, 1, {Steps({{1, 0, 10}, {2, 10, 10}, {3, 20, 10}, {4, 30, 10}})});
  run.time_scale = 100;
  run.predicted_seconds = 80e-6;
  const CellSummary cell = Summarize(lab, std::vector<CellRun>{run}).at(0);
  EXPECT_THAT(cell.step_seconds.median, DoubleNear(100e-6, 1e-15));
  EXPECT_THAT(cell.ratio, DoubleNear(1.25, 1e-12));
  EXPECT_EQ(cell.kind, FigureKind::kShaped);
  EXPECT_EQ(cell.fabric, "nvlink4");
  ASSERT_THAT(cell.breakdown, SizeIs(1));
  EXPECT_THAT(cell.breakdown[0].forward, DoubleNear(25e-6, 1e-15));
  EXPECT_THAT(cell.breakdown[0].other, DoubleNear(25e-6, 1e-15));
}

// 10 ms a step on each rank, 8 samples in it: 800 a second.
CellRun RunOfTwoTracedRanks() {
  CellRun run = RunOf(0, 1,
                      {Steps({{1, 0, 50}, {2, 50, 10}, {3, 60, 10}, {4, 70, 10}}),
                       Steps({{1, 0, 50}, {2, 50, 10}, {3, 60, 10}, {4, 70, 10}})});
  for (std::vector<StepRecord>& rank : run.steps) {
    for (StepRecord& step : rank) {
      step.hidden = Ms(2);
    }
  }
  run.work = {.parameters = 650, .model_flops = 3900, .hardware_flops = 5200, .formula = "6 N"};
  run.workers[0].matrix_flops = 2 * 5200.0 * 800;
  run.workers[1].matrix_flops = 4 * 5200.0 * 800;
  return run;
}

TEST(Summarize, ARanksStepIsWhereItsTimeWentAndWhatItGotDone) {
  const Lab lab = ReadOne("cluster: {workers: 2}\n");
  const CellSummary cell = Summarize(lab, std::vector<CellRun>{RunOfTwoTracedRanks()}).at(0);
  ASSERT_THAT(cell.breakdown, SizeIs(2));
  const RankBreakdown& rank = cell.breakdown[0];
  EXPECT_THAT(rank.step(), DoubleNear(0.010, 1e-12));
  EXPECT_THAT(rank.compute(), DoubleNear(0.005, 1e-12));
  EXPECT_THAT(rank.exposed, DoubleNear(0.0025, 1e-12));
  EXPECT_THAT(rank.hidden, DoubleNear(0.002, 1e-12));
  EXPECT_THAT(rank.samples_per_second, DoubleNear(800, 1e-9));
  EXPECT_THAT(rank.hfu, DoubleNear(0.5, 1e-12)) << "against its own matrix rate";
  EXPECT_THAT(rank.mfu, DoubleNear(0.375, 1e-12)) << "what is computed again is not the model's";
  EXPECT_THAT(cell.breakdown[1].hfu, DoubleNear(0.25, 1e-12));
}

TEST(Summarize, WhatWasNotTracedIsNotKnown) {
  const Lab lab = ReadOne("cluster: {workers: 2}\n");
  CellRun run = RunOfTwoTracedRanks();
  run.steps[1][2].hidden.reset();
  const CellSummary cell = Summarize(lab, std::vector<CellRun>{run}).at(0);
  EXPECT_FALSE(std::isnan(cell.breakdown[0].hidden));
  EXPECT_TRUE(std::isnan(cell.breakdown[1].hidden));
}

TEST(Summarize, AUtilizationAbove100PercentIsNoFigureButAFinding) {
  const Lab lab = ReadOne("cluster: {workers: 2}\n");
  CellRun run = RunOfTwoTracedRanks();
  run.workers[1].matrix_flops = 5200.0 * 800 / 1.56;
  const CellSummary cell = Summarize(lab, std::vector<CellRun>{run}).at(0);
  EXPECT_TRUE(std::isnan(cell.breakdown[1].mfu));
  EXPECT_TRUE(std::isnan(cell.breakdown[1].hfu));
  EXPECT_THAT(cell.breakdown[0].hfu, DoubleNear(0.5, 1e-12));
  EXPECT_THAT(cell.findings,
              Contains(AllOf(Field(&Finding::code, "IMPOSSIBLE_UTILIZATION"),
                             Field(&Finding::text, HasSubstr("rank 1 would reach 156 %")))));
}

TEST(Summarize, AModelledDeviceIsItsOwnPeak) {
  const Lab lab = ReadOne("cluster: {workers: 2}\ncompute: {model: a100}\n");
  CellRun run = RunOfTwoTracedRanks();
  run.work.peak_flops = 10 * 5200.0 * 800;
  const CellSummary cell = Summarize(lab, std::vector<CellRun>{run}).at(0);
  EXPECT_THAT(cell.breakdown[1].hfu, DoubleNear(0.1, 1e-12));
}

// Wall time of compute over a step's that is divided by the time scale would be any figure at all.
TEST(Summarize, ANativeStepOverAShapedNetworkHasNoUtilization) {
  const Lab lab = ReadOne("cluster: {workers: 2}\nfabric: {preset: nvlink4}\n");
  CellRun run = RunOfTwoTracedRanks();
  run.time_scale = 100;
  const CellSummary cell = Summarize(lab, std::vector<CellRun>{run}).at(0);
  EXPECT_TRUE(std::isnan(cell.breakdown[0].mfu));
}

TEST(Summarize, EfficiencyIsAgainstOneWorkerAlone) {
  const Lab lab = ReadOne("cluster: {workers: 2}\n");
  ASSERT_THAT(lab.parts[0].cells, SizeIs(2));
  const std::vector<CellRun> runs = {
      RunOf(0, 1, {Steps({{2, 0, 10}, {3, 10, 10}}), Steps({{2, 0, 10}, {3, 10, 10}})}),
      RunOf(1, 1, {Steps({{2, 0, 8}, {3, 8, 8}})})};
  const auto cells = Summarize(lab, runs);
  ASSERT_THAT(cells, SizeIs(2));
  EXPECT_THAT(cells[0].efficiency, DoubleNear(0.8, 1e-12)) << "1600/s of 2 x 1000/s";
  EXPECT_TRUE(cells[1].baseline);
  EXPECT_EQ(cells[1].exchange, "none");
  EXPECT_EQ(cells[1].efficiency, 1);
}

// Rank 0 takes 10 ms a step, rank 1 takes 30: over the time in which both are at work, four steps
// in 30 ms, however the edges fall.
TEST(Summarize, AsynchronousThroughputIsOfTheTimeInWhichAllAreAtWork) {
  const Lab lab = ReadOne("cluster: {workers: 2}\nexchange: {kind: ps, staleness: none}\n");
  std::vector<StepOf> fast;
  for (int i = 0; i < 12; ++i) {
    fast.push_back({i + 1, 10.0 * i, 10});
  }
  const CellRun run =
      RunOf(0, 1, {Steps(fast), Steps({{1, 0, 30}, {2, 30, 30}, {3, 60, 30}, {4, 90, 30}})});
  const CellSummary cell = Summarize(lab, std::vector<CellRun>{run}).at(0);
  EXPECT_EQ(cell.exchange, "ps async");
  EXPECT_THAT(cell.samples_per_second.median, DoubleNear(32 / 0.030, 1e-6));
  EXPECT_THAT(cell.step_seconds.median, DoubleNear(0.010, 1e-12));
  EXPECT_THAT(cell.loss_curve, SizeIs(8)) << "16 worker steps of 2 workers are 8 global batches";
}

TEST(Summarize, RepeatsGiveMedianAndSpread) {
  const Lab lab = ReadOne("cluster: {workers: 1}\nexchange: {kind: none}\nrepeats: 3\n");
  std::vector<CellRun> runs;
  for (const auto& [repeat, ms] : {std::pair{2, 30.0}, std::pair{1, 10.0}, std::pair{3, 20.0}}) {
    runs.push_back(RunOf(0, repeat, {Steps({{2, 0, ms}})}));
  }
  runs[0].workers[0].param_hash = "other";
  const CellSummary cell = Summarize(lab, runs).at(0);
  EXPECT_EQ(cell.repeats, 3);
  EXPECT_THAT(cell.step_seconds.median, DoubleNear(0.020, 1e-12));
  EXPECT_THAT(cell.step_seconds.least, DoubleNear(0.010, 1e-12));
  EXPECT_THAT(cell.step_seconds.most, DoubleNear(0.030, 1e-12));
  EXPECT_TRUE(cell.hash_equal_across_ranks);
  EXPECT_FALSE(cell.hash_equal_across_repeats);
  EXPECT_EQ(cell.final_loss, 0.5);
  EXPECT_EQ(cell.accuracy, 0.9);
}

TEST(Summarize, StartUpIsTheRepeatsAndMemoryTheLastOnes) {
  const Lab lab = ReadOne("cluster: {workers: 1}\n");
  std::vector<CellRun> runs = {RunOf(0, 1, {Steps({{2, 0, 1}})}),
                               RunOf(0, 2, {Steps({{2, 0, 1}})})};
  runs[0].start_up = Ms(400);
  runs[1].start_up = Ms(100);
  runs[1].workers[0].memory = {{.rank = 0, .kind = "weights", .now = 8, .peak = 9, .predicted = 8}};
  const CellSummary cell = Summarize(lab, runs).at(0);
  EXPECT_DOUBLE_EQ(cell.start_up_seconds.median, 0.25);
  EXPECT_DOUBLE_EQ(cell.start_up_seconds.most, 0.4);
  ASSERT_EQ(cell.memory.size(), 1U);
  EXPECT_EQ(cell.memory[0].peak, 9);
}

TEST(Summarize, HashesAreComparedOverRanksAndOneRepeatSaysNothingOfRepeats) {
  const Lab lab = ReadOne("cluster: {workers: 2}\n");
  CellRun run = RunOf(0, 1, {Steps({{2, 0, 1}}), Steps({{2, 0, 1}})});
  EXPECT_TRUE(Summarize(lab, std::vector{run}).at(0).hash_equal_across_ranks);
  EXPECT_FALSE(Summarize(lab, std::vector{run}).at(0).hash_equal_across_repeats);
  run.workers[1].param_hash = "other";
  EXPECT_FALSE(Summarize(lab, std::vector{run}).at(0).hash_equal_across_ranks);
  EXPECT_THAT(Summarize(lab, std::vector{run}).at(0).param_hashes, ElementsAre("h", "other"));
}

TEST(Summarize, AStepThatOneRankDidNotFinishIsNoStep) {
  const Lab lab = ReadOne("cluster: {workers: 2}\n");
  const CellRun run = RunOf(0, 1, {Steps({{2, 0, 10}, {3, 10, 90}}), Steps({{2, 0, 10}})});
  EXPECT_THAT(Summarize(lab, std::vector{run}).at(0).step_seconds.median, DoubleNear(0.010, 1e-12));
}

TEST(Summarize, ARunThatEndedBeforeItsFirstStepHasNoFigures) {
  const Lab lab = ReadOne("cluster: {workers: 2}\nexchange: {kind: ps, staleness: 1}\n");
  CellRun run{.cell = 0, .steps = {{}, {}}};
  const CellSummary cell = Summarize(lab, std::vector{run}).at(0);
  EXPECT_EQ(cell.samples_per_second.median, 0);
  EXPECT_EQ(cell.step_seconds.median, 0);
  EXPECT_FALSE(cell.hash_equal_across_ranks);
  EXPECT_THAT(cell.loss_curve, IsEmpty());
}

TEST(Summarize, StalenessAndLatenessAreSummed) {
  const Lab lab = ReadOne("cluster: {workers: 1}\nexchange: {kind: ps}\n");
  CellRun run = RunOf(0, 1, {Steps({{2, 0, 1}})});
  run.workers[0].messages = 10;
  run.workers[0].lateness_log2_us = {8, 2};
  run.servers.resize(2);
  run.servers[0].staleness = {{{0, 3}, {1, 1}}};
  run.servers[1].staleness = {{{0, 4}}};
  const CellSummary cell = Summarize(lab, std::vector{run, run}).at(0);
  EXPECT_EQ(cell.messages, 20);
  EXPECT_THAT(cell.lateness_log2_us, ElementsAre(16, 4));
  EXPECT_THAT(cell.staleness, ElementsAre(Pair(0, 14), Pair(1, 2)));
  EXPECT_EQ(cell.servers, 2);
}

TEST(Findings, NativeComputeOnTooFewCores) {
  const Lab lab = ReadOne("cluster: {workers: 2}\ncompute: {threads: 2}\n");
  CellRun run = RunOf(0, 1, {Steps({{2, 0, 1}}), Steps({{2, 0, 1}})});
  run.cores = 4;
  EXPECT_THAT(Summarize(lab, std::vector{run}).at(0).findings, IsEmpty());
  run.cores = 2;
  EXPECT_THAT(Summarize(lab, std::vector{run}).at(0).findings,
              ElementsAre(AllOf(Field(&Finding::code, "CPU_OVERSUBSCRIBED"),
                                Field(&Finding::text,
                                      "2 workers x 2 threads on 2 cores; native times "
                                      "include waiting for a core"))));
}

TEST(Findings, LateMessagesAndAStepAboveItsPrediction) {
  const Lab lab =
      ReadOne("cluster: {workers: 1}\nfabric: {preset: nvlink4}\ncompute: {model: a100}\n");
  CellRun run = RunOf(0, 1, {Steps({{2, 0, 10}})});
  run.time_scale = 100;
  run.predicted_seconds = 50e-6;
  run.workers[0].messages = 100;
  run.workers[0].could_not_keep_up = 5;
  EXPECT_THAT(
      Summarize(lab, std::vector{run}).at(0).findings,
      ElementsAre(AllOf(Field(&Finding::code, "ABOVE_PREDICTION"),
                        Field(&Finding::cause, "late messages"), Field(&Finding::severity, 2.0),
                        Field(&Finding::text,
                              "the step took 2.00 times the predicted 0.05 ms: 5 % of "
                              "the messages were late"))));
  run.workers[0].could_not_keep_up = 20;
  run.predicted_seconds = 0;
  EXPECT_THAT(
      Summarize(lab, std::vector{run}).at(0).findings,
      ElementsAre(AllOf(Field(&Finding::code, "COULD_NOT_KEEP_UP"), Field(&Finding::severity, 0.2),
                        Field(&Finding::text,
                              "20 of 100 messages (20 %) arrived later than the fabric "
                              "would have delivered them, at fabric.time_scale 100"))));
}

TEST(Findings, OnlyLatenessAsksForMoreTime) {
  const Lab lab =
      ReadOne("cluster: {workers: 1}\nfabric: {preset: nvlink4}\ncompute: {model: a100}\n");
  CellRun run = RunOf(0, 1, {Steps({{2, 0, 10}})});
  run.time_scale = 100;
  run.predicted_seconds = 50e-6;
  EXPECT_THAT(
      Summarize(lab, std::vector{run}).at(0).findings,
      ElementsAre(AllOf(Field(&Finding::cause, "unexplained"), Field(&Finding::remedy, ""))));
  run.workers[0].messages = 100;
  run.workers[0].could_not_keep_up = 5;
  EXPECT_THAT(Summarize(lab, std::vector{run}).at(0).findings,
              ElementsAre(Field(&Finding::remedy, HasSubstr("raise fabric.time_scale"))));
}

TEST(Findings, TimesOfASharedGpuMeanNothing) {
  LabSpec spec = ReadOne("cluster: {workers: 2, shared_gpu: true}\nexchange: {kind: nccl}\n")
                     .parts.at(0)
                     .cells.at(0)
                     .spec;
  CellSummary summary;
  summary.workers = 2;
  EXPECT_THAT(FindingsOf(spec, summary, /*cores=*/0, /*lateness_seconds=*/0),
              ElementsAre(AllOf(Field(&Finding::code, "SHARED_GPU"),
                                Field(&Finding::text, HasSubstr("the times mean nothing")))));
  spec.cluster.shared_gpu = false;
  EXPECT_THAT(FindingsOf(spec, summary, /*cores=*/0, /*lateness_seconds=*/0), IsEmpty());
}

// The rate of a step also grows with the batch, by train.scale_rate: no number of the file's own.
TEST(Findings, AnAsynchronousRateIsDividedWhateverItsScale) {
  const Lab lab =
      ReadOne("cluster: {workers: 2}\nexchange: {kind: ps, staleness: 2}\ncompute: {threads: 1}\n");
  LabSpec spec = lab.parts.at(0).cells.at(0).spec;
  spec.train.learning_rate = 0.5;
  spec.train.scale_rate = "linear";
  CellSummary summary;
  summary.workers = 2;
  EXPECT_THAT(FindingsOf(spec, summary, /*cores=*/0, /*lateness_seconds=*/0),
              ElementsAre(AllOf(Field(&Finding::code, "RATE_DIVIDED"),
                                Field(&Finding::text,
                                      "asynchronous, so each worker's gradient is an update of its "
                                      "own, at the learning rate of its step divided by the 2 "
                                      "workers"))));
}

}  // namespace
}  // namespace ranklab::experiment
