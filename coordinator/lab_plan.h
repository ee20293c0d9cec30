// A lab as the list of its runs, with what each needs and how long it should take. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/status.h>

#include "coordinator/forecast.h"
#include "core/units.h"
#include "experiment/lab_spec.h"

namespace ranklab::coordinator {

// One repeat of one cell.
struct PlannedRun {
  int cell = 0;  // in the order of the expanded lab, from 0
  int repeat = 1;
};

struct PlannedCell {
  const experiment::Cell* cell = nullptr;  // of the plan's lab
  std::string part;
  std::string name;  // "scale cell 5": its number within the part
  int workers = 0;   // 0: all in the pool, until Resolve
  int servers = 0;   // only a parameter server's cell has any
  CellForecast forecast;
  double time_scale = 0;   // 0: to be chosen, after its calibration
  bool simulated = false;  // not the cluster's to run
};

// Measured by all the workers of a cell together, natively; of the slowest of them.
struct Calibration {
  Nanos compute{};   // of a step
  Nanos exchange{};  // of a step, all entering together, not overlapped with anything
  Nanos latency{};   // of small messages, the median where it is largest; 0: there were none
};

class LabPlan {
 public:
  explicit LabPlan(experiment::Lab lab);
  LabPlan(const LabPlan&) = delete;  // cells point into the lab
  LabPlan& operator=(const LabPlan&) = delete;

  const experiment::Lab& lab() const { return lab_; }
  // All of the lab's, in its order, those of simulated parts too; runs() has none of these.
  const std::vector<PlannedCell>& cells() const { return cells_; }
  int cells_to_run() const;

  // Part after part; within a part the first repeat of every cell, then the second of every cell,
  // so that a machine that grows slow slows all cells alike.
  const std::vector<PlannedRun>& runs() const { return runs_; }

  // What the largest run from `first_run` on needs; workers are at least 1.
  int WorkersNeeded(std::size_t first_run) const;
  int ServersNeeded(std::size_t first_run) const;
  bool wants_whole_pool() const;  // some cell takes as many workers as there are

  // Settles the cells that take all workers, then asks for each cell's forecast.
  // Errors: the forecast's, with the cell's name.
  absl::Status Resolve(int workers_in_pool, ForecastFn& forecast);

  // One cell for each distinct calibration that is still missing, none when all are there. Cells of
  // equal model, data, batch a worker, exchange, number of workers and threads share one.
  std::vector<int> CellsToCalibrate() const;

  // Errors: those of the choice, with the cell's name.
  absl::Status SetCalibration(int cell, const Calibration& calibration);

  // Wall time that a run of the cell should take. Requires: its time_scale is chosen. A native
  // cell without calibration is guessed.
  double ExpectedSeconds(int cell) const;
  double ExpectedSeconds() const;  // of all runs
  Nanos TimeoutOf(int cell) const;

 private:
  std::string CalibrationKey(int cell) const;

  experiment::Lab lab_;
  std::vector<PlannedCell> cells_;
  std::vector<PlannedRun> runs_;
  std::map<std::string, Calibration> calibrations_;
};

}  // namespace ranklab::coordinator
