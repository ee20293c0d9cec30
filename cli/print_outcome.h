// What a run of a lab says at its end, live or simulated.
#pragma once

#include <string>

#include "experiment/run_record.h"

namespace ranklab::cli {

// Table, sentences, expectations and where the record is; with `json` the summary alone.
void PrintOutcome(const experiment::RunSummary& summary, const std::string& folder, bool json);

}  // namespace ranklab::cli
