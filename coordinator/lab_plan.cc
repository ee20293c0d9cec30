#include "coordinator/lab_plan.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "core/check.h"
#include "core/overloaded.h"
#include "core/seconds.h"
#include "core/status.h"
#include "fabric/time_scale.h"

namespace ranklab::coordinator {
namespace {

// Of a native cell that nobody measured: a small model's step on a few cores. Assumed; only the
// announcement and the deadline depend on it.
constexpr double kNativeStepSeconds = 0.01;
// Forming a generation, connecting, loading data and judging the final model. Assumed.
constexpr double kRunSeconds = 0.3;
// A run may take this many times what is expected of it, and at least a minute.
constexpr double kTimeoutFactor = 20;
constexpr double kTimeoutSecondsMin = 60;

bool Native(const experiment::LabSpec& spec) {
  return spec.fabric.native() && spec.compute.native();
}

std::string NameOf(const experiment::Part& part, const experiment::Cell& cell) {
  return part.name.empty() ? absl::StrFormat("cell %d", cell.index)
                           : absl::StrFormat("%s cell %d", part.name, cell.index);
}

PlannedCell Describe(const experiment::Part& part, const experiment::Cell& cell) {
  const experiment::LabSpec& spec = cell.spec;
  const bool with_servers =
      !cell.baseline && std::holds_alternative<experiment::ParameterServerSpec>(spec.exchange.kind);
  return {.cell = &cell,
          .part = part.name,
          .name = NameOf(part, cell),
          .workers = cell.baseline ? 1 : spec.cluster.workers,
          .servers = with_servers ? spec.cluster.servers : 0,
          .forecast = {},
          .time_scale = part.simulated || Native(spec) ? 1.0 : spec.fabric.time_scale,
          .simulated = part.simulated};
}

absl::StatusOr<double> ChooseScale(const PlannedCell& planned, const Calibration& calibration) {
  const CellForecast& forecast = planned.forecast;
  const fabric::TimeScaleInputs inputs{
      .compute = {.real_seconds = SecondsOf(calibration.compute),
                  .modelled_seconds = forecast.modelled_compute_seconds},
      .exchange = {.real_seconds = SecondsOf(calibration.exchange),
                   .modelled_seconds = forecast.modelled_exchange_seconds},
      .latency = {.real_seconds = SecondsOf(calibration.latency),
                  .modelled_seconds = SecondsOf(forecast.modelled_alpha)}};
  if (!planned.cell->spec.compute.native() && forecast.modelled_compute_seconds <= 0) {
    return Internal("%s: no time scale follows from a modelled compute of %g s", planned.name,
                    forecast.modelled_compute_seconds);
  }
  return fabric::RoundUpToNiceScale(planned.cell->spec.fabric.headroom *
                                    fabric::ChooseTimeScale(inputs));
}

}  // namespace

LabPlan::LabPlan(experiment::Lab lab) : lab_(std::move(lab)) {
  for (const experiment::Part& part : lab_.parts) {
    const int first = static_cast<int>(cells_.size());
    for (const experiment::Cell& cell : part.cells) {
      cells_.push_back(Describe(part, cell));
    }
    const int repeats = part.simulated ? 0 : part.repeats;
    for (int repeat = 1; repeat <= repeats; ++repeat) {
      for (int cell = first; cell < static_cast<int>(cells_.size()); ++cell) {
        runs_.push_back({.cell = cell, .repeat = repeat});
      }
    }
  }
}

int LabPlan::WorkersNeeded(std::size_t first_run) const {
  int needed = 1;
  for (std::size_t run = first_run; run < runs_.size(); ++run) {
    needed = std::max(needed, cells_[static_cast<std::size_t>(runs_[run].cell)].workers);
  }
  return needed;
}

int LabPlan::ServersNeeded(std::size_t first_run) const {
  int needed = 0;
  for (std::size_t run = first_run; run < runs_.size(); ++run) {
    needed = std::max(needed, cells_[static_cast<std::size_t>(runs_[run].cell)].servers);
  }
  return needed;
}

bool LabPlan::wants_whole_pool() const {
  return std::any_of(cells_.begin(), cells_.end(),
                     [](const PlannedCell& cell) { return cell.workers == 0 && !cell.simulated; });
}

int LabPlan::cells_to_run() const {
  return static_cast<int>(std::count_if(cells_.begin(), cells_.end(),
                                        [](const PlannedCell& cell) { return !cell.simulated; }));
}

absl::Status LabPlan::Resolve(int workers_in_pool, ForecastFn& forecast) {
  std::size_t number = 0;
  for (experiment::Part& part : lab_.parts) {
    for (experiment::Cell& cell : part.cells) {
      PlannedCell& planned = cells_[number++];
      if (planned.simulated) {
        continue;
      }
      if (planned.workers == 0) {
        planned.workers = workers_in_pool;
        cell.spec.cluster.workers = workers_in_pool;
      }
      absl::StatusOr<CellForecast> expected = forecast(cell);
      if (!expected.ok()) {
        return Annotate(expected.status(), planned.name);
      }
      planned.forecast = *expected;
    }
  }
  return absl::OkStatus();
}

std::string LabPlan::CalibrationKey(int cell) const {
  const PlannedCell& planned = cells_[static_cast<std::size_t>(cell)];
  const experiment::LabSpec& spec = planned.cell->spec;
  const auto model =
      std::visit(Overloaded{[](const experiment::MlpSpec& mlp) {
                              std::string text = "mlp";
                              for (const int width : mlp.layers) {
                                text += absl::StrFormat(" %d", width);
                              }
                              return text;
                            },
                            [](const experiment::GptSpec& gpt) {
                              return absl::StrFormat("gpt %d %d %d %d tied %d", gpt.layers,
                                                     gpt.hidden, gpt.heads, gpt.context, gpt.tied);
                            }},
                 spec.model);
  const std::string exchange = std::visit(
      Overloaded{[](const experiment::NoExchange&) -> std::string { return "none"; },
                 [](const experiment::NcclSpec&) -> std::string { return "nccl"; },
                 [](const experiment::CollectiveSpec& collective) { return collective.algorithm; },
                 [](const experiment::ParameterServerSpec& ps) -> std::string {
                   return ps.order == experiment::ReductionOrder::kRank ? "ps rank" : "ps arrival";
                 }},
      spec.exchange.kind);
  return absl::StrFormat(
      "%s, %s, batch %d in %d, recompute %d, %s, %d workers of %d threads on %s, %s over %s in %s "
      "with %d servers, buckets %d %d",
      model, spec.data.Key(), spec.BatchOf(0), spec.train.accumulate, spec.train.recompute,
      spec.train.precision, planned.workers, spec.compute.threads, spec.cluster.device, exchange,
      spec.exchange.transport, spec.exchange.wire_dtype, planned.servers,
      spec.exchange.first_bucket, spec.exchange.bucket);
}

std::vector<int> LabPlan::CellsToCalibrate() const {
  std::set<std::string> keys;
  std::vector<int> missing;
  for (int cell = 0; cell < static_cast<int>(cells_.size()); ++cell) {
    if (cells_[static_cast<std::size_t>(cell)].time_scale == 0 &&
        keys.insert(CalibrationKey(cell)).second) {
      missing.push_back(cell);
    }
  }
  return missing;
}

absl::Status LabPlan::SetCalibration(int cell, const Calibration& calibration) {
  const std::string key = CalibrationKey(cell);
  calibrations_[key] = calibration;
  for (int other = 0; other < static_cast<int>(cells_.size()); ++other) {
    PlannedCell& planned = cells_[static_cast<std::size_t>(other)];
    if (planned.time_scale == 0 && CalibrationKey(other) == key) {
      ASSIGN_OR_RETURN(planned.time_scale, ChooseScale(planned, calibration));
    }
  }
  return absl::OkStatus();
}

double LabPlan::ExpectedSeconds(int cell) const {
  const PlannedCell& planned = cells_[static_cast<std::size_t>(cell)];
  RANKLAB_CHECK(planned.time_scale > 0, "%s has no time scale yet", planned.name);
  double step = planned.forecast.modelled_step_seconds * planned.time_scale;
  if (step <= 0) {
    const double exchange = planned.forecast.modelled_exchange_seconds * planned.time_scale;
    const auto measured = calibrations_.find(CalibrationKey(cell));
    step = measured == calibrations_.end()
               ? kNativeStepSeconds + exchange
               : SecondsOf(measured->second.compute) +
                     std::max(exchange, SecondsOf(measured->second.exchange));
  }
  return kRunSeconds + static_cast<double>(planned.cell->spec.train.steps) * step;
}

double LabPlan::ExpectedSeconds() const {
  double sum = 0;
  for (const PlannedRun& run : runs_) {
    sum += ExpectedSeconds(run.cell);
  }
  return sum;
}

Nanos LabPlan::TimeoutOf(int cell) const {
  const std::chrono::duration<double> timeout(
      std::max(kTimeoutSecondsMin, kTimeoutFactor * ExpectedSeconds(cell)));
  return std::chrono::duration_cast<Nanos>(timeout);
}

}  // namespace ranklab::coordinator
