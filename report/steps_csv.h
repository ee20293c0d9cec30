// steps.csv: one line for each step of each rank, written and read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

#include "experiment/run_record.h"

namespace ranklab::report {

// The first line, with units in the names.
std::string_view StepsCsvHeader();

// The lines of one repeat. Times are modelled seconds (wall time over time_scale, which is a column
// of its own); `begins` counts from the first step of the repeat. Loss is the mean of a sample,
// empty for a simulation; hidden is empty where nothing was traced.
std::string StepsCsvLines(std::string_view part, const experiment::CellRun& run);

// One line as it stands in the file, without what only a spreadsheet wants. Modelled seconds.
struct StepLine {
  std::string part{};
  int cell = 0, repeat = 0;
  Rank rank = 0;
  Step step = 0;
  double begins = 0, total = 0, input = 0, forward = 0, backward = 0, exposed = 0, optimizer = 0;
};

// Errors: InvalidArgument, "line 12: 20 fields ...".
absl::StatusOr<std::vector<StepLine>> ReadStepsCsv(std::string_view text);

}  // namespace ranklab::report
