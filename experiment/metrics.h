// The figures of a cell by name, and what a cell is called, for expectations, tables and sentences.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "experiment/run_record.h"

namespace ranklab::experiment {

struct Metric {
  std::string_view name;
  std::string_view words;
  // Nothing where the cell has no such figure (no prediction, no baseline).
  std::optional<double> (*read)(const CellSummary& cell);
};

std::span<const Metric> Metrics();
const Metric* FindMetric(std::string_view name);  // null when there is none

// What was chosen for a cell, by path ("fabric.preset", "cluster.workers", any swept path); nothing
// for a path that this cell does not speak of.
std::optional<std::string> SettingOf(const CellSummary& cell, std::string_view path);
// The paths that SettingOf knows of every cell.
std::span<const std::string_view> CommonSettings();

// "ring, pcie4_x16, 4 workers", with what else the sweep chose: "..., seed 3".
std::string LabelOf(const CellSummary& cell);

}  // namespace ranklab::experiment
