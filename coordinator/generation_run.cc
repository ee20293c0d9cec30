#include "coordinator/generation_run.h"

#include <algorithm>
#include <utility>

#include "coordinator/member_error.h"
#include "core/check.h"
#include "core/log.h"
#include "core/status.h"

namespace ranklab::coordinator {
namespace {

// Five heartbeats missed: not yet suspicion, but reason to wait for it.
constexpr Nanos kSilentAfter = std::chrono::seconds(1);

double Seconds(Nanos duration) { return std::chrono::duration<double>(duration).count(); }

v1::GenerationMember ToProto(const Member& member) {
  v1::GenerationMember proto;
  proto.set_member(member.id);
  proto.set_host(member.contact.host);
  proto.set_grpc_port(member.contact.grpc_port);
  proto.set_tcp_port(member.contact.tcp_port);
  return proto;
}

v1::Role ToProto(Role role) { return role == Role::kWorker ? v1::ROLE_WORKER : v1::ROLE_SERVER; }

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

}  // namespace

GenerationRun::GenerationRun(GenerationTask task, Generation generation,
                             const Membership& membership)
    : task_(std::move(task)),
      generation_(std::move(generation)),
      membership_(membership),
      inquiry_({.symptom_grace = membership.suspect_after() + std::chrono::seconds(1)}) {
  for (const Member& member : generation_.All()) {
    participants_.emplace(member.id, Participant{.member = member, .result = {}});
  }
}

void GenerationRun::Begin(Nanos now, Actions& actions) {
  began_ = now;
  deadline_ = now + task_.ready_timeout;
  v1::Assignment assignment = task_.assignment;
  assignment.set_generation(generation_.number);
  assignment.set_secret(task_.secret);
  for (const Member& worker : generation_.workers) {
    *assignment.add_workers() = ToProto(worker);
  }
  for (const Member& server : generation_.servers) {
    *assignment.add_servers() = ToProto(server);
  }
  for (const auto& [id, participant] : participants_) {
    assignment.set_role(ToProto(participant.member.endpoint.role));
    assignment.set_rank(participant.member.endpoint.rank);
    v1::CoordinatorMessage message;
    *message.mutable_assignment() = assignment;
    Send(actions, id, std::move(message));
  }
}

void GenerationRun::Handle(MemberId from, v1::MemberMessage message, Nanos now, Actions& actions) {
  const auto found = participants_.find(from);
  if (ending_ || found == participants_.end()) {
    return;
  }
  Participant& participant = found->second;
  const auto ours = [this](const auto& part) { return part.generation() == generation_.number; };
  if (message.has_ready() && ours(message.ready())) {
    OnReady(participant, message.ready(), now, actions);
  } else if (message.has_steps() && ours(message.steps())) {
    OnRows(participant, std::move(*message.mutable_steps()), actions);
  } else if (message.has_arrival() && ours(message.arrival())) {
    OnArrival(participant, message.arrival(), now, actions);
  } else if (message.has_result() && ours(message.result())) {
    OnResult(participant, std::move(*message.mutable_result()), now);
  } else if (message.has_peer_lost() && ours(message.peer_lost())) {
    OnPeerLost(participant, message.peer_lost(), now);
  } else if (message.has_applied() && ours(message.applied())) {
    OnApplied(participant, std::move(*message.mutable_applied()), actions);
  }
}

void GenerationRun::OnReady(Participant& from, const v1::Ready& ready, Nanos now,
                            Actions& actions) {
  if (from.ready || running_) {
    return;
  }
  if (!ready.error().empty() || ready.code() != 0) {
    Failed(from, MemberError(ready.code(), ready.error()), now);
    return;
  }
  if (ready.lab_hash() != task_.assignment.lab_hash()) {
    Failed(from,
           FailedPrecondition("it read another lab text: hash %s, the coordinator's is %s",
                              ready.lab_hash(), task_.assignment.lab_hash()),
           now);
    return;
  }
  from.ready = true;
  if (std::all_of(participants_.begin(), participants_.end(),
                  [](const auto& entry) { return entry.second.ready; })) {
    Go(now, actions);
  }
}

void GenerationRun::Go(Nanos now, Actions& actions) {
  running_ = true;
  deadline_ = now + Nanos(task_.assignment.timeout_ns());
  for (const auto& [id, participant] : participants_) {
    v1::CoordinatorMessage message;
    message.mutable_go()->set_generation(generation_.number);
    Send(actions, id, std::move(message));
  }
}

void GenerationRun::OnRows(Participant& from, v1::StepRows rows, Actions& actions) {
  if (from.member.endpoint.role != Role::kWorker) {
    return;
  }
  for (const v1::StepRow& row : rows.rows()) {
    from.last_row = std::max<Step>(from.last_row, row.step());
  }
  if (task_.assignment.calibrate()) {
    return;
  }
  v1::RunEvent event;
  event.mutable_rows()->set_generation(generation_.number);
  event.mutable_rows()->set_rank(from.member.endpoint.rank);
  event.mutable_rows()->mutable_rows()->Swap(rows.mutable_rows());
  Tell(actions, std::move(event));
}

void GenerationRun::OnArrival(Participant& from, const v1::BarrierArrival& arrival, Nanos now,
                              Actions& actions) {
  const int workers = static_cast<int>(generation_.workers.size());
  Barrier& barrier = barriers_.try_emplace(arrival.barrier(), Barrier(workers)).first->second;
  if (from.member.endpoint.role == Role::kWorker && !barrier.deadline()) {
    // The first who comes waits for the slowest: half of the cell's own time-out, at least 30 s.
    barrier.SetDeadline(now + Nanos(task_.assignment.timeout_ns()) / 2);
  }
  for (const Endpoint released : barrier.Arrive(from.member.endpoint)) {
    const std::vector<Member>& role =
        released.role == Role::kWorker ? generation_.workers : generation_.servers;
    v1::CoordinatorMessage message;
    message.mutable_release()->set_generation(generation_.number);
    message.mutable_release()->set_barrier(arrival.barrier());
    Send(actions, role[static_cast<std::size_t>(released.rank)].id, std::move(message));
  }
}

void GenerationRun::OnResult(Participant& from, v1::CellResult result, Nanos now) {
  if (from.result) {
    return;
  }
  const bool failed = result.code() != 0 || !result.error().empty();
  const absl::Status why = failed ? MemberError(result.code(), result.error())
                                  : Internal("it sent its result before the cell began");
  from.result = std::move(result);
  if (failed || !running_) {
    Failed(from, why, now);
    return;
  }
  if (std::all_of(participants_.begin(), participants_.end(), [](const auto& entry) {
        return entry.second.result && entry.second.result->code() == 0;
      })) {
    End(0, absl::OkStatus());
  }
}

void GenerationRun::Failed(const Participant& from, const absl::Status& why, Nanos now) {
  // Once a loss is suspected, whatever else goes wrong is taken for its consequence.
  if (CouldBeALoss(why) || suspecting_) {
    suspecting_ = true;
    inquiry_.Symptom(from.member.endpoint, why, now);
    return;
  }
  End(ExitCodeOf(why),
      Annotate(why, absl::StrFormat("%s, %s", NameOf(from.member.endpoint), Place(StepOf(from)))));
}

void GenerationRun::OnPeerLost(const Participant& from, const v1::PeerLost& report, Nanos now) {
  // Whoever is done closes its wires; only its session can still be lost.
  const auto fetched = barriers_.find(kFetchedBarrier);
  if (fetched != barriers_.end() && fetched->second.open()) {
    return;
  }
  const Endpoint peer{.role = report.role() == v1::ROLE_SERVER ? Role::kServer : Role::kWorker,
                      .rank = report.rank()};
  const std::vector<Member>& role =
      peer.role == Role::kWorker ? generation_.workers : generation_.servers;
  if (peer.rank < 0 || peer.rank >= static_cast<Rank>(role.size()) ||
      peer == from.member.endpoint) {
    Log(LogLevel::kWarning, "%s reports the loss of %s, which is not a peer of its generation",
        NameOf(from.member.endpoint), NameOf(peer));
    return;
  }
  suspecting_ = true;
  inquiry_.Report(from.member.endpoint, peer, report.what(), report.step(), now);
}

void GenerationRun::OnApplied(const Participant& from, v1::InjectionApplied applied,
                              Actions& actions) const {
  if (task_.assignment.calibrate()) {
    return;
  }
  v1::RunEvent event;
  v1::InjectionLog& log = *event.mutable_injection();
  log.set_generation(generation_.number);
  log.set_cell(task_.cell);
  log.set_repeat(task_.assignment.repeat());
  log.set_role(ToProto(from.member.endpoint.role));
  log.set_rank(from.member.endpoint.rank);
  *log.mutable_applied() = std::move(applied);
  Tell(actions, std::move(event));
}

void GenerationRun::Lost(const Loss& loss) {
  const auto found = participants_.find(loss.member.id);
  RANKLAB_CHECK(found != participants_.end(), "member %d is not of generation %d", loss.member.id,
                generation_.number);
  if (ending_) {
    return;
  }
  const Heartbeat& last = loss.member.heartbeat;
  const Step said = last.generation == generation_.number ? last.step : 0;
  const Participant& participant = found->second;
  End(3,
      LossOf(participant.member.endpoint, std::max(said, StepOf(participant)), loss.evidence.what));
}

absl::Status GenerationRun::LossOf(Endpoint whom, Step known_step,
                                   const std::string& evidence) const {
  // Peers in lockstep know better than the last heartbeat in which step it went, and a server has
  // no steps of its own.
  Step step = task_.asynchronous ? known_step : std::max(known_step, inquiry_.LatestStep(whom));
  if (whom.role == Role::kServer) {
    step = std::max(step, LatestWorkerStep());
  }
  return Unavailable("%s was lost %s: %s", NameOf(whom), Place(step), evidence);
}

void GenerationRun::Tick(Nanos now) {
  if (ending_) {
    return;
  }
  if (const auto finding = inquiry_.Decide(SomeoneIsSilent(now), now)) {
    const auto found = std::find_if(
        participants_.begin(), participants_.end(),
        [&](const auto& entry) { return entry.second.member.endpoint == finding->whom; });
    const Step step = StepOf(found->second);
    End(3, finding->reported ? LossOf(finding->whom, step, finding->evidence)
                             : Unavailable("%s gave up %s: %s", NameOf(finding->whom), Place(step),
                                           finding->evidence));
    return;
  }
  CheckDeadlines(now);
}

void GenerationRun::CheckDeadlines(Nanos now) {
  std::vector<std::string> waiting_for;
  for (const auto& [name, barrier] : barriers_) {
    if (barrier.open() || !barrier.deadline() || now < *barrier.deadline()) {
      continue;
    }
    for (const Endpoint worker : barrier.MissingWorkers()) {
      const MemberId id = generation_.workers[static_cast<std::size_t>(worker.rank)].id;
      waiting_for.push_back(WhereIs(participants_.at(id)));
    }
    End(3,
        DeadlineExceeded("barrier \"%s\" of %s waited %.1f s for %s", name, task_.cell_name,
                         Seconds(Nanos(task_.assignment.timeout_ns()) / 2), Joined(waiting_for)));
    return;
  }
  if (now < deadline_) {
    return;
  }
  for (const Member& member : generation_.All()) {
    const Participant& participant = participants_.at(member.id);
    if (running_ ? !participant.result.has_value() : !participant.ready) {
      waiting_for.push_back(WhereIs(participant));
    }
  }
  if (running_) {
    End(3, DeadlineExceeded("%s did not end within %.1f s; it waits for %s", task_.cell_name,
                            Seconds(Nanos(task_.assignment.timeout_ns())), Joined(waiting_for)));
  } else {
    End(3, DeadlineExceeded("%s did not get ready within %.1f s; it waits for %s", task_.cell_name,
                            Seconds(task_.ready_timeout), Joined(waiting_for)));
  }
}

void GenerationRun::End(int exit_code, absl::Status status) {
  ending_ = Ending{.status = std::move(status), .exit_code = exit_code};
}

bool GenerationRun::SomeoneIsSilent(Nanos now) const {
  return std::any_of(participants_.begin(), participants_.end(), [&](const auto& entry) {
    const PoolMember* member = membership_.Find(entry.first);
    return member != nullptr && now - member->last_seen >= kSilentAfter;
  });
}

Step GenerationRun::StepOf(const Participant& participant) const {
  const PoolMember* member = membership_.Find(participant.member.id);
  const Step said = member != nullptr && member->heartbeat.generation == generation_.number
                        ? member->heartbeat.step
                        : 0;
  // A finished step was told in a row, so the next one has begun, if there is one.
  const Step begun =
      participant.last_row > 0
          ? std::min(participant.last_row + 1, std::max(task_.steps, participant.last_row))
          : 0;
  return std::max(said, begun);
}

Step GenerationRun::LatestWorkerStep() const {
  Step latest = 0;
  for (const Member& worker : generation_.workers) {
    latest = std::max(latest, StepOf(participants_.at(worker.id)));
  }
  return latest;
}

std::string GenerationRun::Place(Step step) const {
  if (!running_) {
    return absl::StrFormat("while getting ready for %s", task_.cell_name);
  }
  return step > 0 ? absl::StrFormat("in step %d of %s", step, task_.cell_name)
                  : absl::StrFormat("before the first step of %s", task_.cell_name);
}

std::string GenerationRun::WhereIs(const Participant& participant) const {
  const PoolMember* member = membership_.Find(participant.member.id);
  const bool spoke = member != nullptr && member->heartbeat.generation == generation_.number;
  return absl::StrFormat(
      "%s (step %d, %s)", NameOf(participant.member.endpoint), StepOf(participant),
      spoke && !member->heartbeat.phase.empty() ? member->heartbeat.phase : "phase unknown");
}

void GenerationRun::Abort(const std::string& reason, Actions& actions) const {
  for (const auto& [id, participant] : participants_) {
    v1::CoordinatorMessage message;
    message.mutable_abort()->set_generation(generation_.number);
    message.mutable_abort()->set_reason(reason);
    Send(actions, id, std::move(message));
  }
}

v1::CellEnded GenerationRun::Report(Nanos now) const {
  v1::CellEnded report;
  report.set_generation(generation_.number);
  report.set_cell(task_.cell);
  report.set_repeat(task_.assignment.repeat());
  if (ending_) {
    report.set_code(static_cast<int>(ending_->status.code()));
    report.set_error(MessageOf(ending_->status));
  }
  const auto result_of = [this](const Member& member) {
    return participants_.at(member.id).result.value_or(v1::CellResult());
  };
  for (const Member& worker : generation_.workers) {
    *report.add_workers() = result_of(worker);
  }
  for (const Member& server : generation_.servers) {
    *report.add_servers() = result_of(server);
  }
  report.set_wall_seconds(Seconds(now - began_));
  return report;
}

}  // namespace ranklab::coordinator
