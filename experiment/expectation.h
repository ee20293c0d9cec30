// Claims that a lab makes about its own outcome: "accuracy > 0.95".
//
//   claim       ::= metric op number | "mean" metric op number "over" path
//                 | metric op number "times" exchange
//                 | "param_hash equal across ranks" | "param_hash equal across repeats"
//   op          ::= ">" | ">=" | "<" | "<=" | "="
//   expectation ::= claim [ "where" path ("=" | "!=") value { "and" path ("=" | "!=") value } ]
//
// A claim holds when it holds in every cell of the part that `where` picks, baselines apart. With
// "mean ... over seed" it is about the mean of the cells that differ in nothing but the seed; with
// "times ps" the bound is so many times the figure of the cell that differs in the exchange alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

#include "experiment/lab_spec.h"
#include "experiment/run_record.h"

namespace ranklab::experiment {

struct ParsedExpectation {
  enum class Claim : std::uint8_t { kMetric, kHashAcrossRanks, kHashAcrossRepeats };
  enum class Comparison : std::uint8_t { kAbove, kAtLeast, kBelow, kAtMost, kEqual };
  struct Condition {
    std::string path{};
    bool equal = true;
    std::string value{};
  };

  Claim claim = Claim::kMetric;
  std::string metric{};
  Comparison comparison = Comparison::kAbove;
  double bound = 0;
  std::string mean_over{};       // a path; empty: each cell by itself
  std::string times_exchange{};  // "ps", "ring", ...; empty: the bound is absolute
  std::vector<Condition> where{};
};

// Errors: InvalidArgument, what would be right: an unknown metric with the nearest known one.
absl::StatusOr<ParsedExpectation> ParseExpectation(std::string_view text);

// Whether a cell's setting is what `where` asks for: as numbers where both are, "4" and "4.0".
bool SameSetting(const std::string& a, const std::string& b);

// All expectations of a lab's parts, against the cells that were run. A part of whose cells some
// were not run holds no expectation: what was not seen is not claimed. Against a simulation, claims
// about what training leaves are not judged; one about a cell that has no simulation fails.
std::vector<ExpectationOutcome> EvaluateExpectations(const Lab& lab,
                                                     std::span<const CellSummary> cells);

}  // namespace ranklab::experiment
