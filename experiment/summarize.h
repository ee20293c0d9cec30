// From what the workers reported to one row a cell.
#pragma once

#include <span>
#include <vector>

#include "experiment/lab_spec.h"
#include "experiment/run_record.h"

namespace ranklab::experiment {

// One summary for each cell of which at least one repeat was run, by part and cell. All times in
// modelled units. Warm-up steps are not counted in any time.
//
// Synchronous exchanges: a step takes what its slowest rank takes; a repeat's step time is the
// median over its counted steps, samples/s are the mean samples of a step over that.
// Asynchronous ones: the step time is the median over all ranks' steps; samples/s are the samples
// of the steps (in part, for those on its edge) within the window in which all ranks were past
// warm-up and none had ended, over its length.
// Exposed communication is the median over the steps of the mean over the ranks.
// Efficiency is samples/s over workers times the samples/s of the cell's baseline; 1 for a baseline
// itself, 0 when the baseline was not run.
//
// Requires: part and cell of every run are the lab's.
std::vector<CellSummary> Summarize(const Lab& lab, std::span<const CellRun> runs);

}  // namespace ranklab::experiment
