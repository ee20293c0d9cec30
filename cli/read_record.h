#pragma once

#include <string>

#include <absl/status/statusor.h>

#include "experiment/run_record.h"

namespace ranklab::cli {

// The summary of a folder that `ranklab run` or `ranklab simulate` left.
// Errors: NotFound, no summary there; InvalidArgument, with the file's name, what is wrong in it.
absl::StatusOr<experiment::RunSummary> ReadRecord(const std::string& folder);

}  // namespace ranklab::cli
