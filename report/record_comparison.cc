#include "report/record_comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <absl/strings/str_format.h>
#include <nlohmann/json.hpp>

#include "experiment/metrics.h"
#include "report/figures.h"

namespace ranklab::report {
namespace {

using experiment::CellSummary;

using Key = std::tuple<std::string, bool, std::string, int>;

Key KeyOf(const CellSummary& cell) {
  return {cell.part, cell.baseline, experiment::LabelOf(cell), cell.servers};
}

bool HasFigures(const CellSummary& cell) { return cell.step_seconds.median > 0; }

std::string PlaceOf(const CellSummary& cell) {
  return cell.part.empty() ? experiment::LabelOf(cell)
                           : cell.part + ": " + experiment::LabelOf(cell);
}

// "-" where one of the two is not there.
std::string PrintRatio(double a, double b) {
  return a > 0 && b > 0 ? absl::StrFormat("%.3f", b / a) : "-";
}

}  // namespace

const CellDifference* RecordComparison::Worst() const {
  const auto worst = std::max_element(cells.begin(), cells.end(),
                                      [](const CellDifference& x, const CellDifference& y) {
                                        return std::abs(x.ratio() - 1) < std::abs(y.ratio() - 1);
                                      });
  return worst == cells.end() ? nullptr : &*worst;
}

RecordComparison CompareRecords(const experiment::RunSummary& a, const experiment::RunSummary& b) {
  std::map<Key, const CellSummary*> in_b;
  for (const CellSummary& cell : b.cells) {
    if (HasFigures(cell)) {
      in_b.emplace(KeyOf(cell), &cell);
    }
  }
  RecordComparison comparison;
  for (const CellSummary& cell : a.cells) {
    if (!HasFigures(cell)) {
      continue;
    }
    const auto found = in_b.find(KeyOf(cell));
    if (found == in_b.end()) {
      comparison.only_in_a.push_back(PlaceOf(cell));
      continue;
    }
    const CellSummary& other = *found->second;
    comparison.cells.push_back({.part = cell.part,
                                .label = experiment::LabelOf(cell),
                                .kind_a = cell.kind,
                                .kind_b = other.kind,
                                .step_a = cell.step_seconds.median,
                                .step_b = other.step_seconds.median,
                                .exposed_a = cell.exposed_seconds.median,
                                .exposed_b = other.exposed_seconds.median});
    in_b.erase(found);
  }
  for (const auto& [key, cell] : in_b) {
    comparison.only_in_b.push_back(PlaceOf(*cell));
  }
  return comparison;
}

Table BuildTable(const RecordComparison& comparison) {
  Table table{.columns = {"part", "cell", "kind A", "kind B", "step A", "step B", "B / A",
                          "exposed A", "exposed B", "B / A"},
              .left = {true, true, true, true, false, false, false, false, false, false}};
  std::string part;
  for (const CellDifference& cell : comparison.cells) {
    if (table.rows.empty() || cell.part != part) {
      table.part_begins.push_back(table.rows.size());
      part = cell.part;
    }
    table.rows.push_back({cell.part, cell.label, std::string(experiment::NameOf(cell.kind_a)),
                          std::string(experiment::NameOf(cell.kind_b)), PrintSeconds(cell.step_a),
                          PrintSeconds(cell.step_b), PrintRatio(cell.step_a, cell.step_b),
                          PrintSeconds(cell.exposed_a), PrintSeconds(cell.exposed_b),
                          PrintRatio(cell.exposed_a, cell.exposed_b)});
  }
  return table;
}

std::string ToJson(const RecordComparison& comparison) {
  using Json = nlohmann::ordered_json;
  Json cells = Json::array();
  for (const CellDifference& cell : comparison.cells) {
    cells.push_back({{"part", cell.part},
                     {"cell", cell.label},
                     {"kind_a", experiment::NameOf(cell.kind_a)},
                     {"kind_b", experiment::NameOf(cell.kind_b)},
                     {"step_seconds_a", cell.step_a},
                     {"step_seconds_b", cell.step_b},
                     {"exposed_seconds_a", cell.exposed_a},
                     {"exposed_seconds_b", cell.exposed_b},
                     {"ratio", cell.ratio()}});
  }
  const CellDifference* worst = comparison.Worst();
  return Json({{"cells", cells},
               {"only_in_a", comparison.only_in_a},
               {"only_in_b", comparison.only_in_b},
               {"worst_difference",
                worst == nullptr ? Json(nullptr) : Json(std::abs(worst->ratio() - 1))}})
      .dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ranklab::report
