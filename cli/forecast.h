// What the coordinator needs to know of a cell beforehand, from the closed forms.
#pragma once

#include <absl/status/statusor.h>

#include "coordinator/forecast.h"
#include "experiment/lab_spec.h"

namespace ranklab::cli {

absl::StatusOr<coordinator::CellForecast> ForecastCell(const experiment::Cell& cell);

}  // namespace ranklab::cli
