#include "report/web/render_record.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

#include "core/status.h"
#include "report/atomic_file.h"
#include "report/record_folder.h"
#include "report/steps_csv.h"
#include "report/summary_text.h"
#include "report/web/page.h"

namespace ranklab::report {
namespace {

using experiment::CellSummary;

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) {
    return NotFound("%s cannot be read: %s; name a folder that `ranklab run` left", path,
                    std::strerror(errno));
  }
  return text;
}

// A file of the folder, read by `read`.
template <typename Read>
auto ReadWith(const std::string& path, Read read) -> decltype(read(std::string())) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  auto result = read(text);
  if (!result.ok()) {
    return InvalidArgument(
        "%s: %s; the file is damaged or of another version: run the lab again with this one", path,
        MessageOf(result.status()));
  }
  return result;
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

std::vector<Timeline> TimelinesOf(const std::string& folder, const experiment::RunSummary& summary,
                                  const std::vector<StepLine>& steps) {
  std::vector<Timeline> timelines;
  for (const CellSummary& cell : summary.cells) {
    if (!Exists(folder + "/" + CellFolderName(cell.part, cell.cell, 1) + "/injections.jsonl")) {
      continue;
    }
    Timeline& timeline = timelines.emplace_back(Timeline{.part = cell.part, .cell = cell.cell});
    for (const StepLine& step : steps) {
      if (step.part == cell.part && step.cell == cell.cell && step.repeat == 1) {
        timeline.steps.push_back(step);
      }
    }
  }
  return timelines;
}

std::vector<TraceFolder> TracesOf(const std::string& folder,
                                  const experiment::RunSummary& summary) {
  std::vector<TraceFolder> traces;
  for (const CellSummary& cell : summary.cells) {
    TraceFolder found{.part = cell.part,
                      .cell = cell.cell,
                      .folder = CellFolderName(cell.part, cell.cell, 1) + "/trace"};
    while (Exists(absl::StrFormat("%s/%s/rank_%d.json", folder, found.folder, found.ranks))) {
      ++found.ranks;
    }
    if (found.ranks > 0) {
      traces.push_back(std::move(found));
    }
  }
  return traces;
}

absl::Status Write(const std::string& path, const std::string& text) {
  const absl::Status written = WriteWhole(path, text);
  return written.ok() ? written
                      : FailedPrecondition(
                            "%s; the report is written into the record's folder: make "
                            "it writable, or copy it to where it is",
                            MessageOf(written));
}

}  // namespace

absl::StatusOr<experiment::RunSummary> RenderRecord(const std::string& folder) {
  ASSIGN_OR_RETURN(experiment::RunSummary summary,
                   ReadWith(folder + "/summary.json", experiment::RunSummaryFromJson));
  ASSIGN_OR_RETURN(const std::vector<StepLine> steps,
                   ReadWith(folder + "/steps.csv", ReadStepsCsv));
  RETURN_IF_ERROR(Write(folder + "/table.md", PrintSummaryMarkdown(summary)));
  RETURN_IF_ERROR(
      Write(folder + "/report.html",
            RenderPage(summary, TimelinesOf(folder, summary, steps), TracesOf(folder, summary))));
  return summary;
}

}  // namespace ranklab::report
