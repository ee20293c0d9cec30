#include "experiment/utilization.h"

#include <algorithm>
#include <limits>

#include <absl/strings/str_format.h>

namespace ranklab::experiment {

std::optional<Finding> FillUtilization(CellSummary& cell) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  std::optional<Finding> refused;
  for (RankBreakdown& rank : cell.breakdown) {
    rank.mfu = rank.hfu = kUnknown;
    if (!(rank.peak_flops > 0) || !(rank.samples_per_second > 0) || cell.work.model_flops <= 0) {
      continue;
    }
    const double mfu = rank.samples_per_second * cell.work.model_flops / rank.peak_flops;
    const double hfu = rank.samples_per_second * cell.work.hardware_flops / rank.peak_flops;
    if (const double most = std::max(mfu, hfu); most > 1) {
      if (!refused || most > refused->severity) {
        refused = {.code = std::string(kImpossibleUtilization),
                   .text = absl::StrFormat(
                       "rank %d would reach %.0f %% of its peak (%.4g samples/s of %.4g FLOPs, "
                       "%.4g FLOP/s: %s); more than 100 %% cannot be, so the figure is refused",
                       rank.rank, most * 100, rank.samples_per_second, cell.work.hardware_flops,
                       rank.peak_flops, cell.work.peak),
                   .remedy =
                       "check which parameters are counted, the samples of a step, and "
                       "whether the peak is dense and of this precision",
                   .severity = most};
      }
      continue;
    }
    rank.mfu = mfu;
    rank.hfu = hfu;
  }
  return refused;
}

}  // namespace ranklab::experiment
