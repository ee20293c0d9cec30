// Is one cell faster than another? The rule that every sentence uses.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "experiment/run_record.h"

namespace ranklab::report {

enum class Difference : std::uint8_t { kUnknown, kNone, kFaster, kSlower };

// Of `cell` against `other`, by samples/s. Unknown: fewer than two repeats of what is not modelled,
// no figure, or cores
// oversubscribed in either. None: the ranges of the repeats touch, or the medians differ by less
// than 2 %.
Difference Compare(const experiment::CellSummary& cell, const experiment::CellSummary& other);

// Ratio of their medians. Requires: Compare is not kUnknown.
double SpeedUp(const experiment::CellSummary& cell, const experiment::CellSummary& other);

// Cells of one part that differ in the exchange alone.
struct Rivals {
  std::string fabric{};
  int workers = 0;
  std::vector<const experiment::CellSummary*> cells{};

  // Null when it is not among them.
  const experiment::CellSummary* Find(const std::string& exchange) const;
};
// Without baselines, in order of appearance.
std::vector<Rivals> GroupRivals(const std::string& part,
                                std::span<const experiment::CellSummary> cells);

// "a", "a and b", "a, b and c".
std::string Joined(const std::vector<std::string>& words);

}  // namespace ranklab::report
