// report.html: one self-contained page that opens offline.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiment/run_record.h"

namespace ranklab::report {

// What each rank did in each step of one repeat of a cell: the lanes of a straggler scenario.
struct Timeline {
  std::string part;
  int cell = 0;  // within the part
  double time_scale = 1.0;
  std::vector<std::vector<experiment::StepRecord>> steps;  // [rank]
};

// False in a build without npm: the page then holds the figures and says that charts are missing.
bool PageHasCharts();

std::string RenderPage(const experiment::RunSummary& summary, std::span<const Timeline> timelines);

}  // namespace ranklab::report
