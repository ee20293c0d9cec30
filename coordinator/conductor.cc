#include "coordinator/conductor.h"

#include <algorithm>
#include <utility>

#include "coordinator/live_injection.h"
#include "coordinator/member_error.h"
#include "core/check.h"
#include "core/status.h"
#include "experiment/survival.h"

namespace ranklab::coordinator {

Conductor::Conductor(experiment::Lab lab, ConductorOptions options, Membership& membership,
                     ForecastFn& forecast, Nanos now)
    : plan_(std::move(lab)),
      options_(options),
      membership_(membership),
      forecast_(forecast),
      secrets_(options.seed),
      gather_until_(now + options.join_timeout),
      last_join_(now),
      free_since_(now) {}

Actions Conductor::Joined(const PoolMember& member, Nanos now) {
  Actions actions;
  if (!over()) {
    last_join_ = now;
    free_since_ = generation_ == nullptr ? now : free_since_;
    Log(NameOf(member) + " joined", now, actions);
    Gather(now, actions);
  }
  return actions;
}

Actions Conductor::Tick(Nanos now) {
  Actions actions;
  Gather(now, actions);
  if (generation_ != nullptr) {
    generation_->Tick(now);
    Advance(now, actions);
  }
  return actions;
}

void Conductor::Gather(Nanos now, Actions& actions) {
  if (stage_ != Stage::kGathering) {
    return;
  }
  // A lab that takes all workers waits for all that a launcher started.
  const int launched = plan_.wants_whole_pool() ? membership_.LaunchedOf(Role::kWorker) : 0;
  const absl::Status enough = EnoughMembers(membership_, std::max(plan_.WorkersNeeded(0), launched),
                                            plan_.ServersNeeded(0));
  const bool settled = !plan_.wants_whole_pool() || now >= last_join_ + options_.settle;
  if (enough.ok() && settled) {
    Prepare(now, actions);
  } else if (!enough.ok() && now >= gather_until_) {
    Finish(3,
           absl::StrFormat("too few members after %s: %s %s", TextOf(options_.join_timeout),
                           lab_name(), MessageOf(enough)),
           now, actions);
  }
}

void Conductor::Prepare(Nanos now, Actions& actions) {
  if (absl::Status resolved = plan_.Resolve(membership_.CountOf(Role::kWorker), forecast_);
      !resolved.ok()) {
    Finish(ExitCodeOf(resolved), MessageOf(resolved), now, actions);
    return;
  }
  to_calibrate_ = plan_.CellsToCalibrate();
  std::reverse(to_calibrate_.begin(), to_calibrate_.end());
  if (to_calibrate_.empty()) {
    Announce(actions);
  } else {
    stage_ = Stage::kCalibrating;
    Log(absl::StrFormat("calibrating this machine for %d setting%s", to_calibrate_.size(),
                        to_calibrate_.size() == 1 ? "" : "s"),
        now, actions);
  }
  BeginNext(now, actions);
}

void Conductor::Announce(Actions& actions) {
  stage_ = Stage::kRunning;
  v1::RunEvent event;
  v1::Planned& planned = *event.mutable_planned();
  planned.set_cells(plan_.cells_to_run());
  planned.set_runs(static_cast<int>(plan_.runs().size()));
  std::int64_t steps = 0;
  for (const PlannedRun& run : plan_.runs()) {
    steps += plan_.cells()[static_cast<std::size_t>(run.cell)].cell->spec.train.steps;
  }
  planned.set_steps(steps);
  planned.set_expected_seconds(plan_.ExpectedSeconds());
  for (const PlannedCell& cell : plan_.cells()) {
    planned.add_time_scale(cell.time_scale);
    planned.add_workers(cell.workers);
  }
  Tell(actions, std::move(event));
}

void Conductor::BeginNext(Nanos now, Actions& actions) {
  if (stage_ == Stage::kCalibrating) {
    BeginCalibration(to_calibrate_.back(), now, actions);
  } else if (next_run_ < plan_.runs().size()) {
    BeginRun(plan_.runs()[next_run_], now, actions);
  } else {
    Finish(0,
           absl::StrFormat("%d runs of %d cells are complete", plan_.runs().size(),
                           plan_.cells_to_run()),
           now, actions);
  }
}

GenerationTask Conductor::TaskOf(const PlannedRun& run) {
  const PlannedCell& planned = plan_.cells()[static_cast<std::size_t>(run.cell)];
  const experiment::LabSpec& spec = planned.cell->spec;
  GenerationTask task{.assignment = {},
                      .cell_name = planned.name,
                      .cell = run.cell,
                      .steps = spec.train.steps,
                      .asynchronous = spec.asynchronous(),
                      .continues = spec.cluster.on_loss == "continue",
                      .replicated = experiment::Replicates(spec),
                      .secret = secrets_.Next(),
                      .ready_timeout = options_.ready_timeout};
  v1::Assignment& assignment = task.assignment;
  assignment.set_lab_name(plan_.lab().file);
  assignment.set_lab_text(plan_.lab().text);
  assignment.set_lab_hash(plan_.lab().hash);
  for (const std::string& override_text : plan_.lab().overrides) {
    assignment.add_overrides(override_text);
  }
  assignment.set_part(planned.part);
  assignment.set_cell(planned.cell->index);
  assignment.set_repeat(run.repeat);
  assignment.set_time_scale(planned.time_scale);
  assignment.set_suspect_after_ns(planned.cell->spec.cluster.suspect_after.count());
  return task;
}

void Conductor::BeginCalibration(int cell, Nanos now, Actions& actions) {
  GenerationTask task = TaskOf({.cell = cell, .repeat = 1});
  task.cell_name = "the calibration of " + task.cell_name;
  task.asynchronous = false;
  task.assignment.set_calibrate(true);
  task.assignment.set_time_scale(1);
  task.assignment.set_timeout_ns(Nanos(std::chrono::minutes(1)).count());
  const int servers = plan_.cells()[static_cast<std::size_t>(cell)].servers;
  Form(std::move(task), servers, now, actions);
}

void Conductor::BeginRun(const PlannedRun& run, Nanos now, Actions& actions) {
  const PlannedCell& planned = plan_.cells()[static_cast<std::size_t>(run.cell)];
  membership_.SetSuspectAfter(planned.cell->spec.cluster.suspect_after);
  GenerationTask task = TaskOf(run);
  task.assignment.set_timeout_ns(plan_.TimeoutOf(run.cell).count());
  Form(std::move(task), planned.servers, now, actions);
  if (generation_ == nullptr) {
    return;
  }
  v1::RunEvent event;
  v1::CellStarted& started = *event.mutable_started();
  started.set_generation(generation_->generation().number);
  started.set_cell(run.cell);
  started.set_repeat(run.repeat);
  started.set_run(static_cast<int>(next_run_) + 1);
  started.set_time_scale(planned.time_scale);
  started.set_at_ns(free_since_.count());
  Tell(actions, std::move(event));
}

void Conductor::Form(GenerationTask task, int servers, Nanos now, Actions& actions) {
  const int workers = plan_.cells()[static_cast<std::size_t>(task.cell)].workers;
  absl::StatusOr<Generation> formed = membership_.Form(workers, servers);
  if (!formed.ok()) {
    const std::string why = MessageOf(formed.status());
    if (absl::IsInvalidArgument(formed.status())) {
      Finish(ExitCodeOf(formed.status()), absl::StrFormat("%s: %s", task.cell_name, why), now,
             actions);
    } else {
      Finish(3, absl::StrFormat("too few members remain: %s %s", task.cell_name, why), now,
             actions);
    }
    return;
  }
  generation_ = std::make_unique<GenerationRun>(std::move(task), *std::move(formed), membership_);
  generation_->Begin(now, actions);
}

Actions Conductor::Handle(MemberId from, v1::MemberMessage message, Nanos now) {
  Actions actions;
  if (generation_ != nullptr) {
    generation_->Handle(from, std::move(message), now, actions);
    Advance(now, actions);
  }
  return actions;
}

Actions Conductor::Lost(const Loss& loss, Nanos now) {
  Actions actions;
  if (over()) {
    return actions;
  }
  Log(absl::StrFormat("%s was lost: %s", NameOf(loss.member), loss.evidence.what), now, actions);
  if (generation_ != nullptr && generation_->generation().Find(loss.member.id)) {
    generation_->Lost(loss, actions);
    Advance(now, actions);
  } else if (stage_ != Stage::kGathering) {
    // Whoever is idle now may be needed later.
    const absl::Status enough =
        EnoughMembers(membership_, plan_.WorkersNeeded(next_run_), plan_.ServersNeeded(next_run_));
    if (!enough.ok()) {
      Finish(3,
             absl::StrFormat("%s was lost while it was idle: %s; what is left is too few: the lab "
                             "%s",
                             NameOf(loss.member), loss.evidence.what, MessageOf(enough)),
             now, actions);
    }
  }
  return actions;
}

void Conductor::Advance(Nanos now, Actions& actions) {
  while (generation_ != nullptr && generation_->ending()) {
    const Ending ending = *generation_->ending();
    if (stage_ == Stage::kRunning) {
      v1::RunEvent event;
      *event.mutable_ended() = generation_->Report(now);
      Tell(actions, std::move(event));
    }
    absl::Status status = ending.status;
    int exit_code = ending.exit_code;
    if (status.ok() && stage_ == Stage::kCalibrating) {
      status = KeepCalibration();
      exit_code = ExitCodeOf(status);
    }
    if (!status.ok()) {
      Finish(exit_code, MessageOf(status), now, actions);
      return;
    }
    generation_.reset();
    free_since_ = now;
    if (stage_ == Stage::kRunning) {
      ++next_run_;
    } else if (to_calibrate_.empty()) {
      Announce(actions);
    }
    BeginNext(now, actions);
  }
}

absl::Status Conductor::KeepCalibration() {
  Calibration calibration;
  const v1::CellEnded report = generation_->Report({});
  for (const v1::CellResult& worker : report.workers()) {
    // The slowest decides: everybody waits for it.
    calibration.compute = std::max(calibration.compute, Nanos(worker.native_compute_ns()));
    calibration.exchange = std::max(calibration.exchange, Nanos(worker.native_exchange_ns()));
    calibration.latency = std::max(calibration.latency, Nanos(worker.shape().latency_median_ns()));
  }
  for (const v1::CellResult& server : report.servers()) {
    calibration.latency = std::max(calibration.latency, Nanos(server.shape().latency_median_ns()));
  }
  const int cell = to_calibrate_.back();
  to_calibrate_.pop_back();
  return plan_.SetCalibration(cell, calibration);
}

Actions Conductor::Cancel(const std::string& reason, Nanos now) {
  Actions actions;
  cancelled_ = true;
  Finish(3, reason, now, actions);
  return actions;
}

void Conductor::Finish(int exit_code, const std::string& text, Nanos now, Actions& actions) {
  if (over()) {
    return;
  }
  if (generation_ != nullptr) {
    if (exit_code != 0) {
      generation_->Abort(text, actions);
    }
    if (stage_ == Stage::kRunning && !generation_->ending()) {
      v1::RunEvent event;
      *event.mutable_ended() = generation_->Report(now);
      event.mutable_ended()->set_code(static_cast<int>(absl::StatusCode::kCancelled));
      event.mutable_ended()->set_error(text);
      Tell(actions, std::move(event));
    }
  }
  // A loss or time-out in a begun lab ends everybody (on_loss: stop), so that no process is left
  // waiting on a machine that nobody looks at. A standing pool is kept: its members were told to
  // abort.
  const bool loss =
      exit_code == 3 && stage_ != Stage::kGathering && !cancelled_ && !options_.keep_pool;
  generation_.reset();
  stage_ = Stage::kOver;
  v1::RunEvent event;
  event.mutable_verdict()->set_exit_code(exit_code);
  event.mutable_verdict()->set_text(text);
  Tell(actions, std::move(event));
  actions.emplace_back(
      EndLab{.exit_code = exit_code, .text = text, .dismiss_pool = options_.dismiss_pool || loss});
}

void Conductor::Log(const std::string& text, Nanos now, Actions& actions) const {
  v1::RunEvent event;
  event.mutable_membership()->set_text(text);
  event.mutable_membership()->set_at_ns(now.count());
  Tell(actions, std::move(event));
}

absl::StatusOr<v1::InjectReply> Conductor::Inject(const v1::InjectRequest& request,
                                                  Actions& actions) {
  if (stage_ != Stage::kRunning || generation_ == nullptr || !generation_->running()) {
    return FailedPrecondition("no cell of %s is running now; try again when one is", lab_name());
  }
  const PlannedCell& cell = plan_.cells()[static_cast<std::size_t>(generation_->task().cell)];
  ASSIGN_OR_RETURN(const LiveInjection injection,
                   PrepareInjection(request, {.workers = cell.workers,
                                              .servers = cell.servers,
                                              .time_scale = cell.time_scale}));
  v1::InjectReply reply;
  reply.set_id(++injections_);
  reply.set_applied(injection.description);
  for (const Member& member : generation_->generation().All()) {
    v1::CoordinatorMessage message;
    message.mutable_inject()->set_id(reply.id());
    message.mutable_inject()->set_text(injection.text);
    Send(actions, member.id, std::move(message));
    reply.set_ranks(reply.ranks() + 1);
  }
  return reply;
}

void Conductor::Describe(v1::StatusReply& status) const {
  if (over()) {
    return;
  }
  status.set_lab(lab_name());
  if (generation_ == nullptr) {
    return;
  }
  const v1::Assignment& assignment = generation_->task().assignment;
  status.set_part(assignment.part());
  status.set_cell(assignment.cell());
  status.set_repeat(assignment.repeat());
  status.set_time_scale(assignment.time_scale());
  status.set_generation(generation_->generation().number);
  for (v1::MemberStatus& member : *status.mutable_members()) {
    if (const auto endpoint = generation_->generation().Find(member.member())) {
      member.set_rank(endpoint->rank);
    }
  }
}

}  // namespace ranklab::coordinator
