// report.html: one self-contained page that opens offline.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiment/run_record.h"
#include "report/steps_csv.h"

namespace ranklab::report {

// What each rank did in each step of one repeat of a cell: the lanes of a straggler scenario.
struct Timeline {
  std::string part{};
  int cell = 0;  // within the part
  std::vector<StepLine> steps{};
};

// Where the traces of one repeat of a cell lie: <folder>/rank_<N>.json, from the page's folder.
struct TraceFolder {
  std::string part{};
  int cell = 0;
  std::string folder{};
  int ranks = 0;
};

// False in a build without npm: the page then holds the figures and says that charts are missing.
bool PageHasCharts();

std::string RenderPage(const experiment::RunSummary& summary, std::span<const Timeline> timelines,
                       std::span<const TraceFolder> traces);

}  // namespace ranklab::report
