#include "report/table.h"

#include <algorithm>
#include <array>
#include <map>

#include <absl/strings/str_format.h>

#include "experiment/findings.h"
#include "experiment/metrics.h"
#include "report/figures.h"

namespace ranklab::report {
namespace {

using experiment::CellSummary;
using experiment::Spread;

constexpr std::array<std::string_view, 3> kOwnColumn = {"exchange", "fabric.preset",
                                                        "cluster.workers"};

// Swept paths that no column of its own shows, in order of appearance.
std::vector<std::string> OtherPaths(std::span<const CellSummary> cells) {
  std::vector<std::string> paths;
  for (const CellSummary& cell : cells) {
    for (const auto& [path, value] : cell.settings) {
      const bool own = std::find(kOwnColumn.begin(), kOwnColumn.end(), path) != kOwnColumn.end();
      if (!cell.baseline && !own && std::find(paths.begin(), paths.end(), path) == paths.end()) {
        paths.push_back(path);
      }
    }
  }
  return paths;
}

// Half the way from the fastest to the slowest repeat, against the median.
std::string PrintStep(const CellSummary& cell) {
  const Spread& step = cell.step_seconds;
  if (cell.repeats < 2 || step.median <= 0) {
    return PrintSeconds(step.median);
  }
  return absl::StrFormat("%s ±%.0f%%", PrintSeconds(step.median),
                         (step.most - step.least) / 2 / step.median * 100);
}

std::vector<std::string> RowOf(const CellSummary& cell, const std::vector<std::string>& paths,
                               const std::string& marks) {
  std::vector<std::string> row = {cell.part, cell.exchange};
  for (const std::string& path : paths) {
    row.push_back(experiment::SettingOf(cell, path).value_or("-"));
  }
  const bool trained = cell.kind != experiment::FigureKind::kModelled;
  for (std::string text :
       {cell.fabric, std::to_string(cell.workers), std::to_string(cell.threads),
        PrintRate(cell.samples_per_second.median), PrintStep(cell),
        cell.exchange == "none" ? std::string("-") : PrintSeconds(cell.exposed_seconds.median),
        PrintShare(cell.efficiency), PrintSeconds(cell.predicted_seconds), PrintShare(cell.ratio),
        trained ? PrintLoss(cell.final_loss) : "-",
        trained ? absl::StrFormat("%.3f", cell.accuracy) : "-",
        std::string(experiment::NameOf(cell.kind)) + marks}) {
    row.push_back(std::move(text));
  }
  return row;
}

std::string Sentence(const std::string& text) { return text + (text.ends_with('.') ? "" : "."); }

// Findings of one code and cause share a mark, [1], [2], ..., and a line below the table that gives
// the worst of them; all are in the summary and on the page.
class Marks {
 public:
  std::string Of(const CellSummary& cell) {
    std::string marks;
    for (const experiment::Finding& finding : cell.findings) {
      auto note = std::find_if(notes_.begin(), notes_.end(), [&](const Note& other) {
        return other.worst->code == finding.code && other.worst->cause == finding.cause;
      });
      if (note == notes_.end()) {
        note = notes_.insert(notes_.end(), Note{.worst = &finding, .cell = &cell});
      }
      ++note->cells;
      note->differ = note->differ || finding.severity != note->worst->severity;
      if (finding.severity > note->worst->severity) {
        note->worst = &finding;
        note->cell = &cell;
      }
      marks += absl::StrFormat(" [%d]", note - notes_.begin() + 1);
    }
    return marks;
  }

  std::vector<std::string> Notes() const {
    std::vector<std::string> lines;
    for (const Note& note : notes_) {
      std::string line = absl::StrFormat("[%d] %s", lines.size() + 1, note.worst->code);
      if (note.cells > 1) {
        line += absl::StrFormat(" in %d cells%s%s; %s %s, %s", note.cells,
                                note.worst->cause.empty() ? "" : ", ", note.worst->cause,
                                note.differ ? "worst in" : "such as", note.cell->part,
                                experiment::LabelOf(*note.cell));
      }
      line += ": " + Sentence(note.worst->text);
      if (!note.worst->remedy.empty()) {
        line += " Remedy: " + Sentence(note.worst->remedy);
      }
      lines.push_back(std::move(line));
    }
    return lines;
  }

 private:
  struct Note {
    const experiment::Finding* worst = nullptr;
    const CellSummary* cell = nullptr;
    int cells = 0;
    bool differ = false;  // in severity
  };

  std::vector<Note> notes_;
};

// Baselines are expanded last and read first.
std::vector<const CellSummary*> InReadingOrder(std::span<const CellSummary> cells) {
  std::vector<std::string> parts;
  std::vector<const CellSummary*> order;
  for (const CellSummary& cell : cells) {
    if (std::find(parts.begin(), parts.end(), cell.part) == parts.end()) {
      parts.push_back(cell.part);
    }
  }
  for (const std::string& part : parts) {
    for (const bool baseline : {true, false}) {
      for (const CellSummary& cell : cells) {
        if (cell.part == part && cell.baseline == baseline) {
          order.push_back(&cell);
        }
      }
    }
  }
  return order;
}

std::string Padded(const std::string& text, std::size_t width, bool left) {
  const std::string blanks(width - std::min(width, WidthOf(text)), ' ');
  return left ? text + blanks : blanks + text;
}

std::vector<std::size_t> WidthsOf(const Table& table) {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    std::size_t width = WidthOf(table.columns[column]);
    for (const auto& row : table.rows) {
      width = std::max(width, WidthOf(row[column]));
    }
    widths.push_back(width);
  }
  return widths;
}

std::string AlignedRow(const std::vector<std::string>& cells,
                       const std::vector<std::size_t>& widths, const std::vector<bool>& left) {
  std::string line;
  for (std::size_t column = 0; column < cells.size(); ++column) {
    line += (column == 0 ? "" : "  ") + Padded(cells[column], widths[column], left[column]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string EscapedForMarkdown(std::string text) {
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) {
    text.insert(at, "\\");
  }
  return text;
}

}  // namespace

std::size_t WidthOf(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U;  // not a continuation byte
  }));
}

Table BuildTable(std::span<const CellSummary> cells) {
  const std::vector<std::string> paths = OtherPaths(cells);
  Table table{.columns = {"part", "exchange"}, .left = {true, true}};
  for (const std::string& path : paths) {
    table.columns.push_back(path.substr(path.rfind('.') + 1));
    table.left.push_back(false);
  }
  for (const char* column :
       {"fabric", "workers", "threads", "samples/s", "step", "exposed", "efficiency", "predicted",
        "ratio", "final loss", "accuracy", "kind"}) {
    table.columns.emplace_back(column);
    table.left.push_back(table.columns.back() == "fabric" || table.columns.back() == "kind");
  }
  Marks marks;
  std::string part;
  for (const CellSummary* cell : InReadingOrder(cells)) {
    if (table.rows.empty() || cell->part != part) {
      table.part_begins.push_back(table.rows.size());
      part = cell->part;
    }
    table.rows.push_back(RowOf(*cell, paths, marks.Of(*cell)));
  }
  table.notes = marks.Notes();
  return table;
}

std::string PrintTable(const Table& table) {
  const std::vector<std::size_t> widths = WidthsOf(table);
  std::string text = AlignedRow(table.columns, widths, table.left);
  std::vector<std::string> rules;
  for (const std::size_t width : widths) {
    rules.emplace_back(width, '-');
  }
  text += AlignedRow(rules, widths, table.left);
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    if (row > 0 && std::find(table.part_begins.begin(), table.part_begins.end(), row) !=
                       table.part_begins.end()) {
      text += "\n";
    }
    text += AlignedRow(table.rows[row], widths, table.left);
  }
  for (const std::string& note : table.notes) {
    text += note + "\n";
  }
  return text;
}

std::string PrintMarkdown(const Table& table) {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text = "|";
    for (const std::string& cell : cells) {
      text += " " + EscapedForMarkdown(cell) + " |";
    }
    return text + "\n";
  };
  std::string text = line(table.columns);
  std::vector<std::string> rules;
  for (const bool left : table.left) {
    rules.emplace_back(left ? ":---" : "---:");
  }
  text += line(rules);
  for (const auto& row : table.rows) {
    text += line(row);
  }
  for (const std::string& note : table.notes) {
    text += "\n" + note + "\n";
  }
  return text;
}

}  // namespace ranklab::report
