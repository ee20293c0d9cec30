// MFU and HFU of a cell's ranks, and the refusal of what cannot be.
#pragma once

#include <optional>
#include <string_view>

#include "experiment/run_record.h"

namespace ranklab::experiment {

inline constexpr std::string_view kImpossibleUtilization = "IMPOSSIBLE_UTILIZATION";

// Fills mfu and hfu of every rank from its samples_per_second and peak_flops; NaN where one of them
// is not known. More than 1 is no figure but a mistake in the parameters, the samples or the peak:
// it is NaN too, and the finding says so.
std::optional<Finding> FillUtilization(CellSummary& cell);

}  // namespace ranklab::experiment
