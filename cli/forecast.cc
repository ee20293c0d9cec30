#include "cli/forecast.h"

#include "core/status.h"
#include "fabric/presets.h"
#include "worker/predict.h"

namespace ranklab::cli {

absl::StatusOr<coordinator::CellForecast> ForecastCell(const experiment::Cell& cell) {
  coordinator::CellForecast forecast;
  // Asynchronous and disturbed steps have no closed form: the synchronous, undisturbed one is the
  // best guess of how long the cell will take.
  experiment::LabSpec spec = cell.spec;
  spec.scenario = {};
  if (auto* ps = std::get_if<experiment::ParameterServerSpec>(&spec.exchange.kind)) {
    ps->staleness_bound = 0;
  }
  if (spec.fabric.native()) {
    spec.exchange.kind = experiment::NoExchange{};  // only the compute is modelled
  } else {
    ASSIGN_OR_RETURN(const fabric::Preset preset, fabric::FindPreset(spec.fabric.preset));
    forecast.modelled_alpha = preset.port.alpha;
    experiment::LabSpec apart = spec;
    apart.exchange.overlap = false;
    const absl::StatusOr<double> exchange = worker::PredictExposed(apart);
    if (exchange.ok()) {
      forecast.modelled_exchange_seconds = *exchange;
    } else if (!absl::IsUnimplemented(exchange.status())) {
      return exchange.status();
    }
  }
  const absl::StatusOr<worker::StepPrediction> predicted = worker::EstimateStep(spec);
  if (predicted.ok()) {
    forecast.modelled_step_seconds = predicted->step;
    forecast.modelled_compute_seconds = predicted->compute;
  } else if (!absl::IsUnimplemented(predicted.status())) {
    return predicted.status();
  }
  return forecast;
}

}  // namespace ranklab::cli
