// What the coordinator must know of a cell before it runs it.
#pragma once

#include <absl/functional/any_invocable.h>
#include <absl/status/statusor.h>

#include "core/units.h"
#include "experiment/lab_spec.h"

namespace ranklab::coordinator {

// How long a step takes on the modelled cluster, and the bytes a second of its network. Given by
// the program, because the model's costs live above this folder (worker/predict.h).
struct CellForecast {
  double modelled_step_seconds = 0;     // 0: native
  double modelled_compute_seconds = 0;  // of one worker's step
  double port_bytes_per_second = 0;     // of the modelled network, undilated; 0: native
  Nanos modelled_alpha{};               // of a message, undilated; 0: not known
};
using ForecastFn = absl::AnyInvocable<absl::StatusOr<CellForecast>(const experiment::Cell&)>;

}  // namespace ranklab::coordinator
