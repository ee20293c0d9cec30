// A run in words and figures: what the terminal shows, and table.md.
#pragma once

#include <string>

#include "experiment/run_record.h"

namespace ranklab::report {

// The table, the sentences, what was expected and found.
std::string PrintSummary(const experiment::RunSummary& summary);

// A row a rank: the breakdown of its step, its rate, MFU and HFU.
std::string PrintRanks(const experiment::RunSummary& summary);

// table.md: the question, the sentences, the table, what was expected and found, a row a
// rank, the verdict.
std::string PrintSummaryMarkdown(const experiment::RunSummary& summary);

}  // namespace ranklab::report
