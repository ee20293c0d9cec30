#include "sim/closed_form_cell.h"

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <variant>
#include <vector>

#include "compute/device.h"
#include "core/check.h"
#include "core/status.h"
#include "worker/model.h"
#include "worker/modelled_step.h"
#include "worker/predict.h"

namespace ranklab::sim {
namespace {

using experiment::LabSpec;
using experiment::StepRecord;

Nanos SumOf(const std::vector<Nanos>& layers) {
  return std::accumulate(layers.begin(), layers.end(), Nanos::zero());
}

Nanos FromSeconds(double seconds) { return Nanos(std::llround(seconds * 1e9)); }

StepRecord StepOf(const LabSpec& spec, const worker::StepPrediction& predicted,
                  const worker::LayerTimes& times) {
  StepRecord record;
  record.samples = spec.BatchOf(0);
  record.weight = static_cast<double>(record.samples);
  record.loss_sum = std::numeric_limits<double>::quiet_NaN();
  record.forward = SumOf(times.forward) * spec.train.accumulate;
  record.backward = SumOf(times.backward) * spec.train.accumulate;
  record.optimizer = times.optimizer;
  record.exposed = FromSeconds(predicted.exposed);
  record.step_time = FromSeconds(predicted.step);
  return record;
}

}  // namespace

std::optional<std::string> WhyNoClosedForm(const LabSpec& spec, std::int64_t training_samples) {
  if (std::holds_alternative<experiment::ParameterServerSpec>(spec.exchange.kind)) {
    return "a parameter server's closed form is of workers that enter together, while the next "
           "step's pushes overlap this step's pulls";
  }
  if (!spec.scenario.injections.empty()) {
    return "a disturbed step has no closed form";
  }
  if (spec.GlobalBatch() % spec.cluster.workers != 0 ||
      spec.BatchOf(0) % spec.train.accumulate != 0) {
    return "its workers' batches are not equal; give train.batch_per_worker";
  }
  if (training_samples % spec.GlobalBatch() != 0) {
    return absl::StrFormat(
        "the global batch of %d samples does not divide the %d of the data, so some are cut short",
        spec.GlobalBatch(), training_samples);
  }
  if (const auto predicted = worker::PredictStep(spec); absl::IsUnimplemented(predicted.status())) {
    return std::string(predicted.status().message());
  }
  return std::nullopt;
}

absl::StatusOr<experiment::CellRun> ClosedFormCell(const experiment::Cell& cell,
                                                   std::int64_t training_samples) {
  const LabSpec& spec = cell.spec;
  RANKLAB_CHECK(!WhyNoClosedForm(spec, training_samples));
  compute::CpuDevice device({.threads = 1});
  ASSIGN_OR_RETURN(const std::unique_ptr<worker::Model> model,
                   worker::MakeModel(spec, device, /*max_samples=*/1));
  ASSIGN_OR_RETURN(worker::DeviceStep modelled, worker::DeviceStep::Make(spec, *model));
  ASSIGN_OR_RETURN(const worker::StepPrediction predicted, worker::PredictStep(spec, *model));
  const worker::LayerTimes& times = modelled.For(spec.BatchOf(0) / spec.train.accumulate);

  experiment::CellRun run;
  run.part = cell.part;
  run.cell = cell.index;
  run.simulated = true;
  run.ranks_alike = spec.cluster.workers;
  std::vector<StepRecord>& steps = run.steps.emplace_back();
  for (Step step = 1; step <= spec.train.steps; ++step) {
    StepRecord record = StepOf(spec, predicted, times);
    record.step = step;
    record.begins = record.step_time * (step - 1);
    steps.push_back(record);
  }
  constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();
  experiment::WorkerRecord rank{.final_loss = kAbsent, .test_loss = kAbsent, .accuracy = kAbsent};
  rank.steps = spec.train.steps;
  rank.samples = spec.BatchOf(0) * spec.train.steps;
  rank.passes = static_cast<double>(rank.samples) / static_cast<double>(training_samples);
  run.workers.push_back(rank);
  return run;
}

}  // namespace ranklab::sim
