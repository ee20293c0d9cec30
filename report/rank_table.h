// Where each rank's step went, and how much it got done: a row a rank.
#pragma once

#include <span>

#include "experiment/run_record.h"
#include "report/table.h"

namespace ranklab::report {

// Columns: part, cell, rank, samples/s, tokens/s where samples are sequences, step, the shares of
// it that were compute, exposed communication, waiting for input and idle (together 100 %), the
// communication hidden beside compute as a share of the step, MFU, HFU. The notes name the formula
// and the peak. Cells without steps have no rows.
Table BuildRankTable(std::span<const experiment::CellSummary> cells);

}  // namespace ranklab::report
