// Two records of one lab beside each other, cell by cell: a run against its simulation, or one
// machine against another.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiment/run_record.h"
#include "report/table.h"

namespace ranklab::report {

struct CellDifference {
  std::string part{};
  std::string label{};  // "ring, pcie4_x16, 4 workers"
  experiment::FigureKind kind_a{}, kind_b{};
  double step_a = 0, step_b = 0;        // median, modelled seconds
  double exposed_a = 0, exposed_b = 0;  // likewise

  double ratio() const { return step_b / step_a; }
};

struct RecordComparison {
  std::vector<CellDifference> cells{};   // that both have figures of, in the order of the first
  std::vector<std::string> only_in_a{};  // labels with their part
  std::vector<std::string> only_in_b{};

  // The cell whose step times differ most, by |ratio - 1|; null when there is none.
  const CellDifference* Worst() const;
};

// Cells are the same when part, exchange, fabric, workers, servers and all that was swept are.
// A row without figures (a native cell of a simulation) counts as missing.
RecordComparison CompareRecords(const experiment::RunSummary& a, const experiment::RunSummary& b);

Table BuildTable(const RecordComparison& comparison);

// For programs: {"cells": [...], "only_in_a": [...], "only_in_b": [...], "worst_difference": 0.03}.
std::string ToJson(const RecordComparison& comparison);

}  // namespace ranklab::report
