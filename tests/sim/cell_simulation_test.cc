#include "sim/cell_simulation.h"

#include <cmath>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/seconds.h"
#include "sim/simulated_input.h"
#include "sim/virtual_loop.h"
#include "tests/sim/lab_cells.h"

namespace ranklab::sim {
namespace {

using experiment::Cell;
using experiment::CellSummary;
using experiment::CollectiveSpec;
using experiment::Injection;
using experiment::Lab;
using experiment::NoExchange;
using experiment::ParameterServerSpec;
using experiment::Phase;
using experiment::SlowPhase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

Lab ReadLabs(const std::string& file) {
  auto lab = experiment::ReadLabFile("labs/" + file, {});
  EXPECT_TRUE(lab.ok()) << lab.status();
  return lab.ok() ? *std::move(lab) : Lab{};
}

// Rows of a lab's cells that have a simulation.
std::vector<CellSummary> SimulateLab(const Lab& lab) {
  std::vector<experiment::CellRun> runs;
  for (const experiment::Part& part : lab.parts) {
    for (const Cell& cell : part.cells) {
      if (!WhyNotSimulated(cell.spec)) {
        runs.push_back(Simulate(cell).run);
      }
    }
  }
  return experiment::Summarize(lab, runs);
}

double SamplesPerSecond(const std::vector<CellSummary>& rows, const std::string& part,
                        const std::string& exchange) {
  for (const CellSummary& row : rows) {
    if (row.part == part && row.exchange == exchange) {
      return row.samples_per_second.median;
    }
  }
  ADD_FAILURE() << part << " has no row " << exchange;
  return 0;
}

TEST(SimulateCell, AllEqualStepsOfAQuietRing) {
  Cell cell = SmallCell("nvlink4", 4);
  cell.spec.exchange.kind = CollectiveSpec{};
  const SimulatedCell simulated = Simulate(cell);
  ASSERT_EQ(simulated.run.steps.size(), 4);
  for (const auto& rank : simulated.run.steps) {
    ASSERT_EQ(rank.size(), 5);
    for (const experiment::StepRecord& record : rank) {
      EXPECT_EQ(record.step_time, rank.front().step_time);
      EXPECT_EQ(record.samples, 64);
      EXPECT_EQ(record.step_time, record.input + record.forward + record.backward + record.exposed +
                                      record.optimizer);
      EXPECT_TRUE(std::isnan(record.loss_sum));
    }
  }
}

TEST(SimulateCell, BytesOfARingAreItsChunks) {
  Cell cell = SmallCell("ib_ndr", 4);
  cell.spec.exchange.kind = CollectiveSpec{};
  const SimulatedCell simulated = Simulate(cell);
  const Bytes elements = 64 * 512 + 512 + 512 * 512 + 512 + 512 * 12 + 12 + worker::kGradientTail;
  // 2 (P - 1) / P of the buffer, in each direction; chunks differ by an element at most.
  for (const experiment::StepRecord& record : simulated.run.steps.front()) {
    EXPECT_NEAR(static_cast<double>(record.bytes_sent), 4.0 * 1.5 * elements, 2 * 6 * 4);
    EXPECT_NEAR(static_cast<double>(record.bytes_received), 4.0 * 1.5 * elements, 2 * 6 * 4);
  }
}

TEST(SimulateCell, SameArgumentsSameResult) {
  Cell cell = SmallCell("ethernet_25g", 3);
  cell.spec.exchange.kind = ParameterServerSpec{.staleness_bound = 1};
  experiment::ShapeLink link{
      .from = {Role::kWorker, 0}, .to = {Role::kServer, 1}, .both_directions = true};
  link.spec.bandwidth.bytes_per_second = 1e9;
  link.spec.jitter = std::chrono::microseconds(50);
  cell.spec.scenario.injections = {
      Injection{.at_step = 2, .effect = SlowPhase{.rank = 1, .factor = 2.0, .rotate_every = 1}},
      Injection{.at_step = 2, .effect = link}};
  const SimulatedCell first = Simulate(cell);
  const SimulatedCell second = Simulate(cell);
  EXPECT_EQ(first.events, second.events);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    ASSERT_EQ(first.run.steps[rank].size(), second.run.steps[rank].size());
    for (std::size_t i = 0; i < first.run.steps[rank].size(); ++i) {
      EXPECT_EQ(first.run.steps[rank][i].begins, second.run.steps[rank][i].begins);
      EXPECT_EQ(first.run.steps[rank][i].step_time, second.run.steps[rank][i].step_time);
    }
  }
}

TEST(SimulateCell, JitterOfALinkFollowsFromTheSeed) {
  Cell cell = SmallCell("ib_ndr", 2);
  cell.spec.exchange.kind = CollectiveSpec{};
  experiment::ShapeLink link{
      .from = {Role::kWorker, 0}, .to = {Role::kWorker, 1}, .both_directions = true};
  link.spec.bandwidth.bytes_per_second = 1e12;
  link.spec.jitter = std::chrono::microseconds(100);
  cell.spec.scenario.injections = {Injection{.at_step = 2, .effect = link}};
  const Nanos quiet = StepTime(Simulate(cell), 1);
  const Nanos jittered = StepTime(Simulate(cell), 3);
  EXPECT_GT(jittered, quiet);
  EXPECT_EQ(jittered, StepTime(Simulate(cell), 3));
  cell.spec.seed = 8;
  EXPECT_NE(jittered, StepTime(Simulate(cell), 3));
}

TEST(SimulateCell, APauseAndASlowPhaseLastAsLongAsTheySay) {
  Cell cell = SmallCell("nvlink4", 2);
  cell.spec.exchange.kind = CollectiveSpec{};
  const Nanos pause = std::chrono::milliseconds(3);
  const Nanos extra = std::chrono::milliseconds(2);
  cell.spec.scenario.injections = {
      Injection{
          .at_step = 2, .until_step = 2, .effect = experiment::Pause{.rank = 1, .duration = pause}},
      Injection{.at_step = 4,
                .until_step = 4,
                .effect = SlowPhase{.rank = 0, .phase = Phase::kForward, .extra = extra}}};
  const SimulatedCell simulated = Simulate(cell);
  const Nanos quiet = StepTime(simulated, 1);
  EXPECT_EQ(StepTime(simulated, 2), quiet + pause);
  EXPECT_EQ(StepTime(simulated, 3), quiet);
  EXPECT_EQ(StepTime(simulated, 4), quiet + extra);
  EXPECT_EQ(StepTime(simulated, 5), quiet);
  // The other rank waits for it.
  EXPECT_EQ(simulated.run.steps[0][1].exposed, simulated.run.steps[0][0].exposed + pause);
  EXPECT_EQ(simulated.faults.size(), 4);  // each begins and ends
}

TEST(SimulateCell, MicroBatchesExchangeOnce) {
  Cell cell = SmallCell("nvlink4", 2);
  cell.spec.exchange.kind = CollectiveSpec{};
  cell.spec.train.accumulate = 4;
  const SimulatedCell accumulated = Simulate(cell);
  cell.spec.train.accumulate = 1;
  const SimulatedCell at_once = Simulate(cell);
  EXPECT_EQ(accumulated.run.steps[0][0].bytes_sent, at_once.run.steps[0][0].bytes_sent);
  EXPECT_GT(accumulated.run.steps[0][0].forward, at_once.run.steps[0][0].forward);
}

TEST(SimulateCell, AMeetingBeforeTheExchangeIsUntimed) {
  Cell cell = SmallCell("ib_ndr", 2);
  cell.spec.exchange.kind = CollectiveSpec{};
  cell.spec.exchange.overlap = false;
  cell.spec.exchange.barrier = true;
  cell.spec.scenario.injections = {Injection{
      .at_step = 1, .effect = SlowPhase{.rank = 0, .extra = std::chrono::milliseconds(5)}}};
  const SimulatedCell simulated = Simulate(cell);
  EXPECT_EQ(simulated.run.steps[0][2].exposed, simulated.run.steps[1][2].exposed);
}

TEST(SimulateCell, ShortBatchesOfAnEpochsEndArePlayed) {
  Cell cell = SmallCell("nvlink4", 2);
  cell.spec.exchange.kind = CollectiveSpec{};
  cell.spec.train.steps = 13;  // 1,437 = 11 x 128 + 29
  const SimulatedCell simulated = Simulate(cell);
  EXPECT_EQ(simulated.run.steps[0][11].samples, 15);
  EXPECT_EQ(simulated.run.steps[1][11].samples, 14);
  EXPECT_EQ(simulated.run.steps[0][12].epoch, 1);
}

TEST(SimulateCell, AsynchronousWorkersStayWithinTheBound) {
  for (const std::int64_t bound : {std::int64_t{1}, std::int64_t{3}}) {
    Cell cell = SmallCell("pcie4_x16", 4);
    cell.spec.train.steps = 20;
    cell.spec.exchange.kind = ParameterServerSpec{.staleness_bound = bound};
    cell.spec.scenario.injections = {
        Injection{.at_step = 2, .effect = SlowPhase{.rank = 2, .factor = 10.0}}};
    const SimulatedCell simulated = Simulate(cell);
    std::int64_t most = 0;
    for (const auto& rank : simulated.run.steps) {
      for (const experiment::StepRecord& record : rank) {
        most = std::max(most, record.staleness);
      }
    }
    EXPECT_EQ(most, bound);
  }
}

TEST(WhyNotSimulated, NamesWhatIsNative) {
  Cell cell = SmallCell("native", 2);
  EXPECT_THAT(WhyNotSimulated(cell.spec), Optional(HasSubstr("fabric is native")));
  cell.spec.exchange.kind = NoExchange{};
  EXPECT_EQ(WhyNotSimulated(cell.spec), std::nullopt);
  cell.spec.compute.model = "native";
  EXPECT_THAT(WhyNotSimulated(cell.spec), Optional(HasSubstr("compute is native")));
}

TEST(SimulatedLab, StragglersOrderTheBoundsAsTheLabSays) {
  const Lab lab = ReadLabs("straggler.yaml");
  const std::vector<CellSummary> rows = SimulateLab(lab);
  const auto times = [&](const std::string& part, const std::string& exchange) {
    return SamplesPerSecond(rows, part, exchange) / SamplesPerSecond(rows, part, "ps");
  };
  // Always slow: a bound hides nothing once its lead is used up.
  EXPECT_LT(times("always", "ps staleness 2"), 1.2);
  EXPECT_GT(times("always", "ps async"), 1.3);
  // Rotating: it hides the slowness as no bound does.
  EXPECT_GT(times("rotating", "ps staleness 2"), 1.3);
  EXPECT_GT(times("rotating", "ps async"), 1.3);
  for (const auto& outcome : experiment::EvaluateExpectations(lab, rows)) {
    EXPECT_FALSE(outcome.failed()) << outcome.part << ": " << outcome.text << ": " << outcome.found;
  }
}

TEST(SimulatedLab, RowsAreModelledAndClaimNoLoss) {
  const Lab lab = ReadLabs("straggler.yaml");
  for (const CellSummary& row : SimulateLab(lab)) {
    EXPECT_EQ(row.kind, experiment::FigureKind::kModelled);
    EXPECT_TRUE(std::isnan(row.final_loss));
    EXPECT_TRUE(std::isnan(row.accuracy));
    EXPECT_TRUE(row.loss_curve.empty());
    EXPECT_EQ(row.repeats, 1);
  }
}

// When each of `count` batches is taken, one after the other, by loaders that need 100 ns for one
// once the queue is full.
std::vector<Nanos> TakenFrom(const InputOptions& options, std::size_t count) {
  VirtualLoop loop;
  SimulatedInput input(loop, options);
  loop.Run();
  input.SlowDown(Nanos(100));
  std::vector<Nanos> taken;
  std::function<void()> take = [&] {
    input.Take([&] {
      taken.push_back(loop.Now());
      if (taken.size() < count) {
        take();
      }
    });
  };
  take();
  loop.Run();
  return taken;
}

TEST(SimulatedInput, ASlowLoaderStarvesTheStepOnceTheQueueIsEmpty) {
  // Two were ready and the loader held a third.
  EXPECT_THAT(TakenFrom({.depth = 2}, 5),
              ElementsAre(Nanos(0), Nanos(0), Nanos(0), Nanos(100), Nanos(200)));
}

TEST(SimulatedInput, TwoLoadersBringTwiceAsMuch) {
  EXPECT_THAT(TakenFrom({.depth = 2, .loaders = 2}, 8),
              ElementsAre(Nanos(0), Nanos(0), Nanos(0), Nanos(0), Nanos(100), Nanos(100),
                          Nanos(200), Nanos(200)));
}

}  // namespace
}  // namespace ranklab::sim
