// What the coordinator must know of a cell before it runs it.
#pragma once

#include <absl/functional/any_invocable.h>
#include <absl/status/statusor.h>

#include "core/units.h"
#include "experiment/lab_spec.h"

namespace ranklab::coordinator {

// How long a step takes on the modelled cluster, undilated. Given by the program, because the
// model's costs live above this folder (worker/predict.h).
struct CellForecast {
  double modelled_step_seconds = 0;      // 0: native
  double modelled_compute_seconds = 0;   // of one worker's step; 0: native
  double modelled_exchange_seconds = 0;  // of one step, nothing overlapped; 0: native, or none
  Nanos modelled_alpha{};                // of a message; 0: native
};
using ForecastFn = absl::AnyInvocable<absl::StatusOr<CellForecast>(const experiment::Cell&)>;

}  // namespace ranklab::coordinator
