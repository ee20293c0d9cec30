#include "report/rank_table.h"

#include <algorithm>
#include <cmath>

#include <absl/strings/str_format.h>

#include "experiment/metrics.h"
#include "report/figures.h"

namespace ranklab::report {
namespace {

using experiment::CellSummary;
using experiment::RankBreakdown;

std::string PrintPercent(double share) {
  return std::isfinite(share) ? absl::StrFormat("%.1f %%", share * 100) : "-";
}

std::vector<std::string> RowOf(const CellSummary& cell, const RankBreakdown& rank, bool tokens) {
  const double step = rank.step();
  std::vector<std::string> row = {cell.part, experiment::LabelOf(cell), std::to_string(rank.rank),
                                  PrintRate(rank.samples_per_second)};
  if (tokens) {
    row.push_back(PrintRate(rank.samples_per_second * static_cast<double>(cell.work.tokens)));
  }
  row.push_back(PrintSeconds(step));
  for (const double part : {rank.compute(), rank.exposed, rank.input, rank.other, rank.hidden}) {
    row.push_back(PrintPercent(part / step));
  }
  row.push_back(PrintPercent(rank.mfu));
  row.push_back(PrintPercent(rank.hfu));
  return row;
}

void AddNote(std::string note, std::vector<std::string>& notes) {
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) {
    notes.push_back(std::move(note));
  }
}

}  // namespace

Table BuildRankTable(std::span<const CellSummary> cells) {
  const bool tokens = std::any_of(cells.begin(), cells.end(),
                                  [](const CellSummary& cell) { return cell.work.tokens > 0; });
  Table table{.columns = {"part", "cell", "rank", "samples/s"}, .left = {true, true, false, false}};
  if (tokens) {
    table.columns.emplace_back("tokens/s");
  }
  for (const char* column :
       {"step", "compute", "exposed", "input", "idle", "hidden", "MFU", "HFU"}) {
    table.columns.emplace_back(column);
  }
  table.left.resize(table.columns.size(), false);
  table.notes = {
      "compute, exposed communication, input and idle are the whole step; hidden is communication "
      "beside compute"};
  for (const CellSummary& cell : cells) {
    bool first = true;
    for (const RankBreakdown& rank : cell.breakdown) {
      if (!(rank.step() > 0)) {
        continue;
      }
      if (first) {
        table.part_begins.push_back(table.rows.size());
        first = false;
      }
      table.rows.push_back(RowOf(cell, rank, tokens));
      if (std::isfinite(rank.mfu)) {
        AddNote(absl::StrFormat("MFU, HFU (%s): %s; peak: %s", experiment::NameOf(cell.kind),
                                cell.work.formula, cell.work.peak),
                table.notes);
      }
    }
  }
  return table;
}

}  // namespace ranklab::report
