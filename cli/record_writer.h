// The record of a lab's runs, live or simulated: keeps the folder up to date after every run and
// judges the expectations at the end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "experiment/lab_spec.h"
#include "experiment/run_record.h"
#include "report/record_folder.h"
#include "worker/trace_buffer.h"

namespace ranklab::cli {

// One repeat of one cell, as it was recorded.
struct RecordedRun {
  experiment::CellRun run;
  std::vector<worker::TraceBuffer::Taken> traces;  // [rank]
  std::vector<report::InjectionLine> injections;
};

class RecordWriter {
 public:
  // Makes the record's folder below `parent`. Errors: Unavailable, it cannot be made.
  static absl::StatusOr<std::unique_ptr<RecordWriter>> Make(const experiment::Lab& lab,
                                                            const std::string& parent);

  // `cell` of the lab, with what is known before it runs.
  static experiment::CellRun Describe(const experiment::Cell& cell, int repeat, double time_scale);

  // Steps, traces and injections into the folder; figures too, if the run came to its end.
  // Errors: Unavailable, the record cannot be written any more.
  absl::Status Add(RecordedRun recorded, bool whole);

  // The last word: judges what was run, writes summary, table and page.
  absl::Status Finish(int exit_code, const std::string& verdict);

  const experiment::RunSummary& summary() const { return summary_; }
  const std::string& folder() const { return folder_.path(); }

 private:
  RecordWriter(const experiment::Lab& lab, report::RecordFolder folder);

  absl::Status WriteDetails(const RecordedRun& recorded);

  const experiment::Lab& lab_;
  report::RecordFolder folder_;
  std::vector<experiment::CellRun> finished_;
  experiment::RunSummary summary_;
};

}  // namespace ranklab::cli
