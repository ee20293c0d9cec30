// A generation in trouble: who was lost, on what evidence and in which step, and who was waited
// for.
#include <algorithm>

#include "coordinator/generation_run.h"
#include "coordinator/member_error.h"
#include "core/check.h"
#include "core/log.h"
#include "core/seconds.h"
#include "core/status.h"

namespace ranklab::coordinator {
namespace {

// From the first refusal of memory to the verdict: ranks in lockstep are refused together.
constexpr Nanos kRefusalGrace = std::chrono::seconds(1);

// Five heartbeats missed: not yet suspicion, but reason to wait for it.
constexpr Nanos kSilentAfter = std::chrono::seconds(1);

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

}  // namespace

void GenerationRun::Failed(const Participant& from, const absl::Status& why, Nanos now) {
  if (absl::IsResourceExhausted(why)) {
    return Refused(from, why, now);
  }
  if (!refused_.empty()) {
    return;  // a consequence
  }
  // Once a loss is suspected, whatever else goes wrong is taken for its consequence.
  if (CouldBeALoss(why) || suspecting_) {
    suspecting_ = true;
    inquiry_.Symptom(from.member.endpoint, why, now);
    return;
  }
  End(ExitCodeOf(why),
      Annotate(why, absl::StrFormat("%s, %s", NameOf(from.member.endpoint), Place(StepOf(from)))));
}

// Was it this rank only? The others are heard before the verdict.
void GenerationRun::Refused(const Participant& from, const absl::Status& why, Nanos now) {
  if (refused_.empty()) {
    refused_at_ = now;
  }
  refused_.emplace(from.member.endpoint, why);
  if (refused_.size() == generation_.workers.size()) {
    EndRefused();
  }
}

void GenerationRun::EndRefused() {
  const auto& [first, why] = *refused_.begin();
  std::string whom;
  if (generation_.workers.size() > 1) {
    std::vector<std::string> names;
    for (const auto& [endpoint, status] : refused_) {
      names.push_back(NameOf(endpoint));
    }
    whom = names.size() == 1                            ? "; on this rank only"
           : names.size() == generation_.workers.size() ? "; on all ranks alike"
                                                        : "; on " + Joined(names);
  }
  const std::string text =
      absl::StrFormat("%s of %s, %s%s", NameOf(first), task_.cell_name, MessageOf(why), whom);
  End(ExitCodeOf(why), absl::Status(why.code(), text));
}

void GenerationRun::OnPeerLost(const Participant& from, const v1::PeerLost& report, Nanos now) {
  if (!refused_.empty()) {
    return;  // whoever was refused closes its wires
  }
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
  if (At(peer).lost) {
    return;  // settled
  }
  suspecting_ = true;
  inquiry_.Report(from.member.endpoint, peer, report.what(), report.step(), now);
}

void GenerationRun::Lost(const Loss& loss, Actions& actions) {
  const auto found = participants_.find(loss.member.id);
  RANKLAB_CHECK(found != participants_.end(), "member %d is not of generation %d", loss.member.id,
                generation_.number);
  if (ending_) {
    return;
  }
  const Heartbeat& last = loss.member.heartbeat;
  const Step said = last.generation == generation_.number ? last.step : 0;
  Participant& participant = found->second;
  const Step step = std::max(said, StepOf(participant));
  const std::string why = WhyNotWithout(participant);
  if (!why.empty()) {
    const absl::Status lost = LossOf(participant.member.endpoint, step, loss.evidence.what);
    End(3, task_.continues ? absl::Status(lost.code(), MessageOf(lost) + "; " + why) : lost);
    return;
  }
  GoOnWithout(participant, loss, actions);
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
  if (!refused_.empty()) {
    if (now >= refused_at_ + kRefusalGrace) {
      EndRefused();
    }
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
                         SecondsOf(Nanos(task_.assignment.timeout_ns()) / 2), Joined(waiting_for)));
    return;
  }
  if (now < deadline_) {
    return;
  }
  for (const Member& member : generation_.All()) {
    const Participant& participant = participants_.at(member.id);
    if (!participant.lost && (running_ ? !participant.result.has_value() : !participant.ready)) {
      waiting_for.push_back(WhereIs(participant));
    }
  }
  if (running_) {
    End(3, DeadlineExceeded("%s did not end within %.1f s; it waits for %s", task_.cell_name,
                            SecondsOf(Nanos(task_.assignment.timeout_ns())), Joined(waiting_for)));
  } else {
    End(3, DeadlineExceeded("%s did not get ready within %.1f s; it waits for %s", task_.cell_name,
                            SecondsOf(task_.ready_timeout), Joined(waiting_for)));
  }
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

}  // namespace ranklab::coordinator
