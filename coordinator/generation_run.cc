// A generation as it should go: ready, go, rows, barriers, results.
#include "coordinator/generation_run.h"

#include <algorithm>
#include <utility>

#include "coordinator/member_error.h"
#include "core/seconds.h"
#include "core/status.h"

namespace ranklab::coordinator {
namespace {

v1::GenerationMember ToProto(const Member& member) {
  v1::GenerationMember proto;
  proto.set_member(member.id);
  proto.set_host(member.contact.host);
  proto.set_grpc_port(member.contact.grpc_port);
  proto.set_tcp_port(member.contact.tcp_port);
  return proto;
}

v1::Role ToProto(Role role) { return role == Role::kWorker ? v1::ROLE_WORKER : v1::ROLE_SERVER; }

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
  if (arrival.token().size() > kMostTokenBytes) {
    Failed(from,
           InvalidArgument("it came to barrier %s with a token of %d bytes; at most %d",
                           arrival.barrier(), arrival.token().size(), kMostTokenBytes),
           now);
    return;
  }
  const auto [found, fresh] = barriers_.try_emplace(arrival.barrier(), Barrier(workers));
  Barrier& barrier = found->second;
  for (const Member& worker : generation_.workers) {
    if (fresh && At(worker.endpoint).lost) {
      barrier.Leave(worker.endpoint.rank);
    }
  }
  if (from.member.endpoint.role == Role::kWorker && !barrier.deadline()) {
    // The first who comes waits for the slowest: half of the cell's own time-out, at least 30 s.
    barrier.SetDeadline(now + Nanos(task_.assignment.timeout_ns()) / 2);
  }
  Release(arrival.barrier(), barrier.Arrive(from.member.endpoint, arrival.token()), actions);
}

void GenerationRun::Release(const std::string& barrier, const std::vector<Endpoint>& released,
                            Actions& actions) {
  const std::vector<std::string>& tokens = barriers_.at(barrier).tokens();
  for (const Endpoint endpoint : released) {
    v1::CoordinatorMessage message;
    message.mutable_release()->set_generation(generation_.number);
    message.mutable_release()->set_barrier(barrier);
    *message.mutable_release()->mutable_tokens() = {tokens.begin(), tokens.end()};
    Send(actions, At(endpoint).member.id, std::move(message));
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
  EndIfAllAreDone();
}

void GenerationRun::EndIfAllAreDone() {
  if (std::all_of(participants_.begin(), participants_.end(), [](const auto& entry) {
        return entry.second.lost || (entry.second.result && entry.second.result->code() == 0);
      })) {
    End(0, absl::OkStatus());
  }
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

void GenerationRun::End(int exit_code, absl::Status status) {
  ending_ = Ending{.status = std::move(status), .exit_code = exit_code};
}

void GenerationRun::Abort(const std::string& reason, Actions& actions) const {
  for (const auto& [id, participant] : participants_) {
    if (participant.lost) {
      continue;
    }
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
  report.mutable_losses()->Assign(losses_.begin(), losses_.end());
  report.set_wall_seconds(SecondsOf(now - began_));
  return report;
}

}  // namespace ranklab::coordinator
