#include "cli/lab_simulation.h"

#include <optional>
#include <string>
#include <utility>

#include "core/status.h"
#include "sim/cell_simulation.h"
#include "sim/closed_form_cell.h"

namespace ranklab::cli {
namespace {

using experiment::Cell;

report::InjectionLine LineOf(const sim::FaultLine& fault) {
  return {.member = NameOf(Endpoint{Role::kWorker, fault.rank}),
          .step = fault.step,
          .asked = fault.asked,
          .applied = fault.applied,
          .ends = fault.ends};
}

void TakeFigures(experiment::CellRun from, experiment::CellRun& to) {
  to.steps = std::move(from.steps);
  to.workers = std::move(from.workers);
  to.servers = std::move(from.servers);
}

bool IsPlayed(const experiment::LabSpec& spec) {
  return spec.cluster.workers <= LabSimulation::kMostPlayed;
}

std::optional<std::string> WhyNot(const experiment::LabSpec& spec, std::int64_t training_samples) {
  if (auto why = sim::WhyNotSimulated(spec); why || IsPlayed(spec)) {
    return why;
  }
  if (const auto why = sim::WhyNoClosedForm(spec, training_samples)) {
    return absl::StrFormat(
        "%d workers are more than the %d that are played message by message, and %s",
        spec.cluster.workers, LabSimulation::kMostPlayed, *why);
  }
  return std::nullopt;
}

}  // namespace

absl::Status LabSimulation::Run(absl::FunctionRef<bool(const experiment::Part&)> picked,
                                absl::FunctionRef<absl::Status(const std::string& name)> before) {
  for (const experiment::Part& part : lab_.parts) {
    if (!picked(part)) {
      continue;
    }
    for (const Cell& cell : part.cells) {
      const std::string name = absl::StrFormat("%s cell %d", part.name, cell.index);
      RETURN_IF_ERROR(before(name));
      if (const absl::Status simulated = Simulate(cell); !simulated.ok()) {
        return Annotate(simulated, name);
      }
    }
  }
  return absl::OkStatus();
}

// A simulation needs no more than the number: data that are drawn need not be drawn for it.
absl::StatusOr<std::int64_t> LabSimulation::TrainingSamplesOf(const experiment::DataSpec& spec) {
  if (spec.kind == "synthetic" || spec.kind == "grammar") {
    return spec.samples;
  }
  ASSIGN_OR_RETURN(const worker::Dataset* data, datasets_.Load(spec, lab_.file));
  return data->train.samples();
}

absl::Status LabSimulation::Simulate(const Cell& cell) {
  ASSIGN_OR_RETURN(const std::int64_t samples, TrainingSamplesOf(cell.spec.data));
  RecordedRun recorded;
  recorded.run = RecordWriter::Describe(cell, /*repeat=*/1, /*time_scale=*/1.0);
  recorded.run.simulated = true;
  if (auto why = WhyNot(cell.spec, samples)) {
    recorded.run.not_simulated = *std::move(why);
    ++not_simulated_;
    return writer_.Add(std::move(recorded), /*whole=*/true);
  }
  if (IsPlayed(cell.spec)) {
    RETURN_IF_ERROR(Play(cell, samples, recorded));
  } else {
    ASSIGN_OR_RETURN(experiment::CellRun run, sim::ClosedFormCell(cell, samples));
    recorded.run.ranks_alike = run.ranks_alike;
    TakeFigures(std::move(run), recorded.run);
  }
  ++simulated_;
  return writer_.Add(std::move(recorded), /*whole=*/true);
}

absl::Status LabSimulation::Play(const Cell& cell, std::int64_t samples, RecordedRun& recorded) {
  ASSIGN_OR_RETURN(sim::SimulatedCell simulated, sim::SimulateCell(cell, samples));
  TakeFigures(std::move(simulated.run), recorded.run);
  recorded.traces = std::move(simulated.traces);
  for (const sim::FaultLine& fault : simulated.faults) {
    recorded.injections.push_back(LineOf(fault));
  }
  return absl::OkStatus();
}

}  // namespace ranklab::cli
