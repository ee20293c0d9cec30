// What the simulator is held to: published rows beside its predictions. A check is a function here
// and a line in checks.cc.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

namespace ranklab::sim {

struct ComparedRow {
  std::string name;
  double published = 0;
  double predicted = 0;
  bool fitted = false;  // the constants were fitted on it; else it is a prediction

  double error() const { return predicted / published - 1; }
};

struct Comparison {
  std::string unit;
  std::vector<ComparedRow> rows{};
  std::string note{};  // what was assumed

  double MeanError() const;  // of absolute values
  double WorstError() const;
  double MeanPredictedError() const;  // of the rows that are not fitted; all of them if none is
};

struct ValidationCheck {
  std::string_view name;
  std::string_view source;
  std::string_view kind;  // of the published figures: "measured", "closed form"
  double mean_limit = 0;  // a larger error is a regression
  double worst_limit = 0;
  std::function<absl::StatusOr<Comparison>()> compare;
};

std::span<const ValidationCheck> ValidationChecks();

// One a file.
absl::StatusOr<Comparison> CompareStepTimes();    // Korthikanti et al.
absl::StatusOr<Comparison> CompareMemory();       // Korthikanti et al.
absl::StatusOr<Comparison> CompareWeakScaling();  // Narayanan et al.
absl::StatusOr<Comparison> CompareMultiNode();    // vTrain

}  // namespace ranklab::sim
