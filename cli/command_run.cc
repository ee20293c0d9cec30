#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/address.h"
#include "cli/build_id.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/lab_flags.h"
#include "cli/lab_limits.h"
#include "cli/lab_simulation.h"
#include "cli/local_cluster.h"
#include "cli/print_outcome.h"
#include "cli/progress.h"
#include "cli/run_recorder.h"
#include "cli/signals.h"
#include "coordinator/lab_client.h"
#include "core/log.h"
#include "core/status.h"
#include "experiment/lab_reader.h"

namespace ranklab::cli {
namespace {

constexpr Nanos kEndGrace = std::chrono::milliseconds(1000);

struct RunFlags : LabFlags {
  std::string coordinator;  // empty: processes of this machine
  int workers = 0;          // for `workers: all` on this machine
  double join_timeout_seconds = 20;

  Nanos JoinTimeout() const { return Nanos(static_cast<std::int64_t>(join_timeout_seconds * 1e9)); }
};

// What the largest cell of the lab needs.
LocalClusterOptions PoolOf(const experiment::Lab& lab, int workers_for_all) {
  LocalClusterOptions pool{.workers = 0, .servers = 0};
  for (const experiment::Part& part : lab.parts) {
    if (part.simulated) {
      continue;
    }
    for (const experiment::Cell& cell : part.cells) {
      const experiment::ClusterSpec& cluster = cell.spec.cluster;
      const bool servers =
          std::holds_alternative<experiment::ParameterServerSpec>(cell.spec.exchange.kind);
      pool.workers =
          std::max(pool.workers, cluster.workers == 0 ? workers_for_all : cluster.workers);
      pool.servers = std::max(pool.servers, servers ? cluster.servers : 0);
    }
  }
  return pool;
}

// How long a silent coordinator is waited for: as long as the most patient cell says.
Nanos SuspectAfter(const experiment::Lab& lab) {
  Nanos longest{};
  for (const experiment::Part& part : lab.parts) {
    for (const experiment::Cell& cell : part.cells) {
      longest = std::max(longest, cell.spec.cluster.suspect_after);
    }
  }
  return longest;
}

void PrintPlan(std::FILE* to, const experiment::Lab& lab, const v1::Planned& plan,
               const std::string& coordinator) {
  std::fprintf(to, "%s: %d cells, %d runs, %lld steps, about %.0f s", lab.name.c_str(),
               plan.cells(), plan.runs(), static_cast<long long>(plan.steps()),
               plan.expected_seconds());
  if (lab.budget_seconds > 0) {
    std::fprintf(to, " of a budget of %.0f s", lab.budget_seconds);
  }
  std::fprintf(to, "\ncoordinator: %s (for ranklab inject and ranklab status, --coordinator)\n",
               coordinator.c_str());
  if (lab.budget_seconds > 0 && plan.expected_seconds() > lab.budget_seconds) {
    std::fprintf(to,
                 "this machine is expected to exceed the lab's budget; fewer repeats or cells: "
                 "--set repeats=1\n");
  }
  std::fflush(to);
}

// One run of a lab, with what has to be ended whatever happens.
class LabRun {
 public:
  LabRun(const RunFlags& flags, const experiment::Lab& lab) : flags_(flags), lab_(lab) {}

  int Run() {
    const absl::Status prepared = Prepare();
    if (!prepared.ok()) {
      return Fail(interrupted_ ? absl::CancelledError("interrupted before the lab began")
                               : prepared);
    }
    const absl::Status streamed = Stream();
    progress_.reset();
    if (cluster_ != nullptr) {
      cluster_->End(kEndGrace);
    }
    const bool complete = verdict_.has_value() && verdict_->exit_code() == kSuccess;
    Conclude(streamed, complete && !interrupted_ ? Simulate() : absl::OkStatus());
    if (cluster_ == nullptr && verdict_.has_value()) {
      TellTheCoordinator();
    }
    return Report();
  }

 private:
  absl::Status Prepare() {
    if (auto made = RunRecorder::Make(lab_, flags_.out); made.ok()) {
      recorder_ = *std::move(made);
    } else {
      return InvalidArgument("--out %s: %s", flags_.out, MessageOf(made.status()));
    }
    address_ = flags_.coordinator;
    if (address_.empty()) {
      ASSIGN_OR_RETURN(cluster_, LocalCluster::Start(PoolOf(lab_, flags_.workers)));
      address_ = cluster_->coordinator();
    }
    client_ = std::make_unique<coordinator::LabClient>(address_);
    // A signal of before has waited for this.
    signals_.emplace([this](int) {
      interrupted_ = true;
      client_->Cancel();
    });
    return client_->AwaitAnswer(flags_.JoinTimeout());
  }

  absl::Status Stream() {
    v1::RunLabRequest request;
    request.set_lab_name(lab_.file);
    request.set_lab_text(lab_.text);
    for (const std::string& override : lab_.overrides) {
      request.add_overrides(override);
    }
    request.set_dismiss_pool(cluster_ != nullptr);
    request.set_join_timeout_ns(flags_.JoinTimeout().count());
    request.set_build(kBuild);
    request.set_concludes(true);
    return client_->RunLab(request, SuspectAfter(lab_),
                           [this](const v1::RunEvent& event) { OnEvent(event); });
  }

  void OnEvent(const v1::RunEvent& event) {
    recorder_->OnEvent(event);
    if (event.has_planned()) {
      // Standard output is the summary alone with --json.
      PrintPlan(flags_.json ? stderr : stdout, lab_, event.planned(), address_);
      progress_ = std::make_unique<Progress>(event.planned().steps());
    } else if (event.has_verdict()) {
      verdict_ = event.verdict();
    }
    if (progress_ != nullptr) {
      progress_->Update(recorder_->steps_done(), recorder_->Current());
    }
  }

  // The parts that the lab wants in virtual time, behind what was run.
  absl::Status Simulate() {
    const auto simulated = [](const experiment::Part& part) { return part.simulated; };
    std::int64_t cells = 0;
    for (const experiment::Part& part : lab_.parts) {
      cells += simulated(part) ? static_cast<std::int64_t>(part.cells.size()) : 0;
    }
    if (cells == 0) {
      return absl::OkStatus();
    }
    Progress progress(cells);
    std::int64_t done = 0;
    const auto before = [&](const std::string& name) -> absl::Status {
      progress.Update(done++, name);
      return interrupted_ ? absl::CancelledError("interrupted") : absl::OkStatus();
    };
    return recorder_->AddMore(
        [&](RecordWriter& writer) { return LabSimulation(lab_, writer).Run(simulated, before); });
  }

  // One verdict, whoever is left to give it.
  void Conclude(const absl::Status& streamed, const absl::Status& simulated) {
    exit_code_ = kSuccess;
    std::string text = "all cells ran";
    if (interrupted_) {
      exit_code_ = kLostPeer;
      text = "interrupted; the finished cells are kept";
    } else if (!simulated.ok()) {
      exit_code_ = ExitCodeOf(simulated);
      text = MessageOf(simulated);
    } else if (verdict_.has_value()) {
      exit_code_ = verdict_->exit_code();
      text = verdict_->text().empty() ? text : verdict_->text();
    } else if (!streamed.ok()) {
      exit_code_ = ExitCodeOf(streamed);
      const std::string how = cluster_ == nullptr ? "" : cluster_->HowOneEnded();
      text = absl::StrFormat("the coordinator was lost %s: %s", recorder_->Place(),
                             how.empty() ? MessageOf(streamed) : how);
    }
    if (const absl::Status written = recorder_->Finish(exit_code_, text); !written.ok()) {
      std::fprintf(stderr, "ranklab: %s\n", MessageOf(written).c_str());
      exit_code_ = std::max(exit_code_, kFailedExpectation);
    }
    exit_code_ = std::max(exit_code_, recorder_->summary().exit_code);
  }

  // Services that end with the lab (--once) take its exit code from here.
  void TellTheCoordinator() {
    const absl::Status told = client_->Conclude(exit_code_, recorder_->summary().verdict);
    if (!told.ok()) {
      Log(LogLevel::kWarning, "the verdict did not reach the coordinator: %s", MessageOf(told));
    }
  }

  int Report() {
    const experiment::RunSummary& summary = recorder_->summary();
    PrintOutcome(summary, recorder_->folder(), flags_.json);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begins_;
    if (!flags_.json && lab_.budget_seconds > 0 && took.count() > lab_.budget_seconds) {
      std::printf("it took %.0f s, more than the lab's budget of %.0f s\n", took.count(),
                  lab_.budget_seconds);
    }
    std::fflush(stdout);
    if (exit_code_ != kSuccess) {
      std::fprintf(stderr, "ranklab: %s\n", summary.verdict.c_str());
    }
    return exit_code_;
  }

  const RunFlags& flags_;
  const experiment::Lab& lab_;
  const std::chrono::steady_clock::time_point begins_ = std::chrono::steady_clock::now();
  std::string address_;  // the coordinator's
  std::unique_ptr<RunRecorder> recorder_;
  std::unique_ptr<LocalCluster> cluster_;
  std::unique_ptr<coordinator::LabClient> client_;
  std::unique_ptr<Progress> progress_;
  std::optional<v1::Verdict> verdict_;
  std::atomic<bool> interrupted_{false};
  std::optional<SignalWatcher> signals_;  // borrows the client
  int exit_code_ = kSuccess;
};

int RunLabCommand(const RunFlags& flags) {
  BlockEndingSignals();
  const absl::StatusOr<experiment::Lab> lab = experiment::ReadLabFile(flags.lab, flags.overrides);
  if (!lab.ok()) {
    return Fail(lab.status());
  }
  absl::Status possible = CheckBuildCanRun(*lab);
  if (possible.ok() && flags.coordinator.empty()) {
    possible = CheckThisMachineCanRun(*lab, flags.workers);
  }
  if (!possible.ok()) {
    return Fail(possible);
  }
  return LabRun(flags, *lab).Run();
}

}  // namespace

void AddRunCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command =
      app.add_subcommand("run", "run a lab on processes of this machine, or on a cluster");
  command->footer(
      "Examples:\n"
      "  ranklab run labs/compare.yaml\n"
      "  ranklab run labs/compare.yaml --set repeats=1 --set fabric.time_scale=200\n"
      "  ranklab run labs/compare.yaml --coordinator 10.0.0.1:7070\n"
      "Exit code: 0 success, 1 a failed expectation, 2 a mistake in the input, 3 a lost peer.");
  AddLabFlags(*command, *flags);
  command
      ->add_option("--coordinator", flags->coordinator,
                   "run on the cluster of this coordinator, host:port")
      ->check(AddressMistake);
  command->add_option("--workers", flags->workers, "workers on this machine for `workers: all`")
      ->check(CLI::Range(1, kMostLocalProcesses));
  command
      ->add_option("--join-timeout", flags->join_timeout_seconds,
                   "seconds to wait for the coordinator, and for members to join")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->callback([flags, &exit_code] { exit_code = RunLabCommand(*flags); });
}

}  // namespace ranklab::cli
