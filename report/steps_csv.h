// steps.csv: one line for each step of each rank.
#pragma once

#include <string>
#include <string_view>

#include "experiment/run_record.h"

namespace ranklab::report {

// The first line, with units in the names.
std::string_view StepsCsvHeader();

// The lines of one repeat. Times are modelled seconds (wall time over time_scale, which is a column
// of its own); `begins` counts from the first step of the repeat. Loss is the mean of a sample.
std::string StepsCsvLines(std::string_view part, const experiment::CellRun& run);

}  // namespace ranklab::report
