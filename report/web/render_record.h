// A record's report, made from what lies in its folder: at the end of a run, and again whenever
// somebody asks.
#pragma once

#include <string>

#include <absl/status/statusor.h>

#include "experiment/run_record.h"

namespace ranklab::report {

// Reads summary.json and steps.csv of a folder that a run left, writes its table.md and report.html
// anew, and returns the summary. Cells in which something was injected (injections.jsonl) get a
// timeline; the traces are linked.
// Errors, all with the file and what to do: NotFound, not such a folder; InvalidArgument, a damaged
// file, or one of another version; FailedPrecondition, the folder cannot be written.
absl::StatusOr<experiment::RunSummary> RenderRecord(const std::string& folder);

}  // namespace ranklab::report
