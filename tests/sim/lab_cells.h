// Cells for tests of the simulated lab.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "experiment/expectation.h"
#include "experiment/lab_reader.h"
#include "experiment/summarize.h"
#include "sim/cell_simulation.h"

namespace ranklab::sim {

inline constexpr std::int64_t kDigits = 1437;  // training samples of `digits`

// One step of a small network on `workers` workers; an exchange is chosen by the caller.
inline experiment::Cell SmallCell(const std::string& preset, int workers) {
  experiment::Cell cell;
  experiment::LabSpec& spec = cell.spec;
  spec.seed = 7;
  spec.model = experiment::MlpSpec{{64, 512, 512, 12}};
  spec.train = {.steps = 5, .warmup_steps = 1, .batch_per_worker = 64};
  spec.cluster = {.workers = workers, .servers = 2};
  spec.compute = {.model = "a100"};
  spec.fabric = {.preset = preset};
  return cell;
}

inline SimulatedCell Simulate(const experiment::Cell& cell) {
  absl::StatusOr<SimulatedCell> simulated = SimulateCell(cell, kDigits);
  EXPECT_TRUE(simulated.ok()) << simulated.status();
  return simulated.ok() ? *std::move(simulated) : SimulatedCell{};
}

// Of the slowest rank in `step`, from 1.
inline Nanos StepTime(const SimulatedCell& cell, Step step) {
  Nanos slowest{};
  for (const auto& rank : cell.run.steps) {
    slowest = std::max(slowest, rank.at(static_cast<std::size_t>(step - 1)).step_time);
  }
  return slowest;
}

}  // namespace ranklab::sim
