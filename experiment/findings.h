// What a reader must know before trusting a row's figures.
#pragma once

#include <string>
#include <vector>

#include "experiment/lab_spec.h"
#include "experiment/run_record.h"

namespace ranklab::experiment {

// Measured: nothing was modelled. Shaped: a real run whose network or compute was held to a model's
// time. (Modelled and assumed are for figures that no run made.)
FigureKind KindOf(const LabSpec& spec);

// The ratio of step to predicted step above which a row explains itself.
inline constexpr double kRatioToExplain = 1.15;
// The share of late messages above which the shaper says that it could not keep up.
inline constexpr double kLateShareToReport = 0.05;

// CPU_OVERSUBSCRIBED, EMULATED_PRECISION, SHARED_GPU, RATE_DIVIDED, COULD_NOT_KEEP_UP,
// NETWORK_NOT_HELD, ABOVE_PREDICTION. `summary` is complete but for them; `lateness_seconds`, of
// compute past its modelled end, a step.
std::vector<Finding> FindingsOf(const LabSpec& spec, const CellSummary& summary, int cores,
                                double lateness_seconds);

}  // namespace ranklab::experiment
