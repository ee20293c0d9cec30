#include "report/comparison.h"

#include <algorithm>

#include "core/check.h"

namespace ranklab::report {
namespace {

using experiment::CellSummary;

bool Comparable(const CellSummary& cell) {
  // A simulation has no spread: another repeat would be the same.
  const bool spread_known = cell.repeats >= 2 || cell.kind == experiment::FigureKind::kModelled;
  return spread_known && cell.samples_per_second.median > 0 &&
         std::none_of(cell.findings.begin(), cell.findings.end(),
                      [](const auto& finding) { return finding.code == "CPU_OVERSUBSCRIBED"; });
}

// All that was chosen but the exchange.
std::string KeyOf(const CellSummary& cell) {
  std::string key = cell.fabric + "\n" + std::to_string(cell.workers);
  for (const auto& [path, value] : cell.settings) {
    if (path != "exchange" && !path.starts_with("exchange.")) {
      key += "\n" + path + "=" + value;
    }
  }
  return key;
}

}  // namespace

Difference Compare(const CellSummary& cell, const CellSummary& other) {
  constexpr double kLeastDifference = 0.02;
  if (!Comparable(cell) || !Comparable(other)) {
    return Difference::kUnknown;
  }
  const double factor = SpeedUp(cell, other);
  if (factor > 1 + kLeastDifference &&
      cell.samples_per_second.least > other.samples_per_second.most) {
    return Difference::kFaster;
  }
  if (factor < 1 - kLeastDifference &&
      cell.samples_per_second.most < other.samples_per_second.least) {
    return Difference::kSlower;
  }
  return Difference::kNone;
}

double SpeedUp(const CellSummary& cell, const CellSummary& other) {
  RANKLAB_CHECK(other.samples_per_second.median > 0);
  return cell.samples_per_second.median / other.samples_per_second.median;
}

const CellSummary* Rivals::Find(const std::string& exchange) const {
  const auto found = std::find_if(cells.begin(), cells.end(), [&](const CellSummary* cell) {
    return cell->exchange == exchange;
  });
  return found == cells.end() ? nullptr : *found;
}

std::vector<Rivals> GroupRivals(const std::string& part, std::span<const CellSummary> cells) {
  std::vector<Rivals> groups;
  std::vector<std::string> keys;
  for (const CellSummary& cell : cells) {
    if (cell.part != part || cell.baseline) {
      continue;
    }
    const std::string key = KeyOf(cell);
    const auto found = std::find(keys.begin(), keys.end(), key);
    if (found == keys.end()) {
      keys.push_back(key);
      groups.push_back({.fabric = cell.fabric, .workers = cell.workers, .cells = {&cell}});
    } else {
      groups[static_cast<std::size_t>(found - keys.begin())].cells.push_back(&cell);
    }
  }
  return groups;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) {
      text += i + 1 == words.size() ? " and " : ", ";
    }
    text += words[i];
  }
  return text;
}

}  // namespace ranklab::report
