// The figures of one repeat of one cell, before repeats are put together.
#pragma once

#include <vector>

#include "experiment/lab_spec.h"
#include "experiment/run_record.h"

namespace ranklab::experiment {

// Seconds are modelled: wall time over the run's time_scale. Zeros when no step was counted.
struct RepeatFigures {
  double step_seconds = 0;
  double samples_per_second = 0;
  double exposed_seconds = 0;
  double lateness_seconds = 0;  // of compute past its modelled end, mean over counted steps
  double bytes_sent_per_step = 0;
};
RepeatFigures FiguresOf(const LabSpec& spec, const CellRun& run);

// Mean seconds of each rank's counted steps, and its samples in them; no peak, no utilization.
std::vector<RankBreakdown> BreakdownOf(const LabSpec& spec, const CellRun& run);

// The loss of each global batch in the order in which they were done, and when. A synchronous step
// is one batch; asynchronously, as many worker steps in a row as there are workers are one.
struct LossCurve {
  std::vector<double> loss{};     // mean of a sample
  std::vector<double> seconds{};  // modelled, after the first step began
};
LossCurve LossCurveOf(const LabSpec& spec, const CellRun& run);

}  // namespace ranklab::experiment
