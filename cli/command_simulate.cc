#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/lab_flags.h"
#include "cli/lab_simulation.h"
#include "cli/print_outcome.h"
#include "cli/progress.h"
#include "cli/record_writer.h"
#include "core/status.h"
#include "experiment/lab_reader.h"
#include "experiment/setting_place.h"

namespace ranklab::cli {
namespace {

using experiment::Cell;
using experiment::Lab;

struct SimulateFlags : LabFlags {
  int workers = 0;  // for `workers: all`
};

// Takes the number of workers for the cells that want all there are.
absl::Status ResolveWorkers(Lab& lab, int workers) {
  for (experiment::Part& part : lab.parts) {
    for (Cell& cell : part.cells) {
      if (cell.spec.cluster.workers > 0) {
        continue;
      }
      if (workers == 0) {
        return InvalidArgument(
            "%s: cluster.workers is all; a simulation has as many as --workers N says",
            experiment::PlaceOf(lab, cell, "cluster.workers"));
      }
      cell.spec.cluster.workers = workers;
    }
  }
  return absl::OkStatus();
}

class Simulation {
 public:
  Simulation(const SimulateFlags& flags, const Lab& lab) : flags_(flags), lab_(lab) {}

  int Run() {
    if (auto made = RecordWriter::Make(lab_, flags_.out); made.ok()) {
      writer_ = *std::move(made);
    } else {
      return Fail(InvalidArgument("--out %s: %s", flags_.out, MessageOf(made.status())));
    }
    const absl::Status simulated = SimulateAll();
    const int code = simulated.ok() ? kSuccess : ExitCodeOf(simulated);
    const std::string verdict = simulated.ok() ? verdict_ : MessageOf(simulated);
    if (const absl::Status written = writer_->Finish(code, verdict); !written.ok()) {
      return Fail(written);
    }
    return Report();
  }

 private:
  absl::Status SimulateAll() {
    std::int64_t cells = 0;
    for (const experiment::Part& part : lab_.parts) {
      cells += static_cast<std::int64_t>(part.cells.size());
    }
    Progress progress(cells);
    std::int64_t done = 0;
    LabSimulation simulation(lab_, *writer_);
    RETURN_IF_ERROR(simulation.Run([](const experiment::Part&) { return true; },
                                   [&](const std::string& name) {
                                     progress.Update(done++, name);
                                     return absl::OkStatus();
                                   }));
    verdict_ = absl::StrFormat("%d cells simulated", simulation.simulated());
    if (simulation.not_simulated() > 0) {
      verdict_ += absl::StrFormat(", %d have no simulation", simulation.not_simulated());
    }
    return absl::OkStatus();
  }

  int Report() const {
    const experiment::RunSummary& summary = writer_->summary();
    PrintOutcome(summary, writer_->folder(), flags_.json);
    if (!flags_.json) {
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begins_;
      std::printf("%s, in %.1f s\n", summary.verdict.c_str(), took.count());
    }
    std::fflush(stdout);
    if (summary.exit_code != kSuccess) {
      std::fprintf(stderr, "ranklab: %s\n", summary.verdict.c_str());
    }
    return summary.exit_code;
  }

  const SimulateFlags& flags_;
  const Lab& lab_;
  const std::chrono::steady_clock::time_point begins_ = std::chrono::steady_clock::now();
  std::unique_ptr<RecordWriter> writer_;
  std::string verdict_;
};

int SimulateLab(const SimulateFlags& flags) {
  absl::StatusOr<Lab> lab = experiment::ReadLabFile(flags.lab, flags.overrides);
  if (!lab.ok()) {
    return Fail(lab.status());
  }
  if (const absl::Status resolved = ResolveWorkers(*lab, flags.workers); !resolved.ok()) {
    return Fail(resolved);
  }
  return Simulation(flags, *lab).Run();
}

}  // namespace

void AddSimulateCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<SimulateFlags>();
  CLI::App* command = app.add_subcommand("simulate", "play a lab in virtual time, any world size");
  command->footer(
      "Plays every cell with a modelled fabric and modelled compute on one thread and leaves the\n"
      "record that `ranklab run` leaves; native cells are named. Beyond 128 workers a cell is\n"
      "computed by its closed form.\n"
      "Examples:\n"
      "  ranklab simulate labs/straggler.yaml\n"
      "  ranklab simulate labs/compare.yaml --set cluster.workers=16\n"
      "  ranklab simulate labs/scaling.yaml\n"
      "Exit code: 0 success, 1 a failed expectation, 2 a mistake in the input.");
  AddLabFlags(*command, *flags);
  command->add_option("--workers", flags->workers, "workers for `workers: all`")
      ->check(CLI::Range(1, 1 << 20));
  command->callback([flags, &exit_code] { exit_code = SimulateLab(*flags); });
}

}  // namespace ranklab::cli
