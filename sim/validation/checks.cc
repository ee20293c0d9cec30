#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "sim/validation/check.h"

namespace ranklab::sim {

double Comparison::MeanError() const {
  double sum = 0;
  for (const ComparedRow& row : rows) {
    sum += std::abs(row.error());
  }
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

double Comparison::WorstError() const {
  double worst = 0;
  for (const ComparedRow& row : rows) {
    worst = std::max(worst, std::abs(row.error()));
  }
  return worst;
}

double Comparison::MeanPredictedError() const {
  Comparison predicted;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(predicted.rows),
               [](const ComparedRow& row) { return !row.fitted; });
  return predicted.rows.empty() ? MeanError() : predicted.MeanError();
}

std::span<const ValidationCheck> ValidationChecks() {
  static const std::vector<ValidationCheck> checks = {
      {"memory", "Korthikanti et al., arXiv 2205.05198, figures 1 and 7", "closed form", 0.005,
       0.025, CompareMemory},
      {"step_times", "Korthikanti et al., arXiv 2205.05198, table 5", "measured", 0.035, 0.08,
       CompareStepTimes},
      {"weak_scaling", "Narayanan et al., SC 2021, table 1", "measured", 0.04, 0.08,
       CompareWeakScaling},
      {"multi_node", "VIA-Research/vTrain f8dda84, ground_truth_multi.csv", "measured", 0.08, 0.55,
       CompareMultiNode},
  };
  return checks;
}

}  // namespace ranklab::sim
