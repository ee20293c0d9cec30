// The table of a run: one row a cell, the row `none` first in its part.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiment/run_record.h"

namespace ranklab::report {

struct Table {
  std::vector<std::string> columns{};
  std::vector<bool> left{};                      // [column]: words are aligned left, figures right
  std::vector<std::vector<std::string>> rows{};  // [row][column]
  std::vector<std::size_t> part_begins{};        // rows before which a part begins
  std::vector<std::string> notes{};              // below the table: what a mark means, a line each
};

// Columns: exchange, what else the sweep chose, fabric, workers, threads, samples/s, step (median,
// spread), exposed, efficiency, predicted, ratio, final loss, accuracy, kind. Figures carry the
// unit that suits their size. Rows with findings end in a mark that the notes explain.
Table BuildTable(std::span<const experiment::CellSummary> cells);

// For a terminal: aligned by what is seen, not by bytes.
std::string PrintTable(const Table& table);
std::string PrintMarkdown(const Table& table);

// Columns that a text takes on a terminal: code points, for the Latin text and signs of a table.
std::size_t WidthOf(std::string_view text);

}  // namespace ranklab::report
