// A generation that goes on without one of its members (on_loss: continue).
#include <algorithm>
#include <utility>

#include "coordinator/generation_run.h"
#include "core/log.h"
#include "core/status.h"

namespace ranklab::coordinator {
namespace {

v1::Role ToProto(Role role) { return role == Role::kWorker ? v1::ROLE_WORKER : v1::ROLE_SERVER; }

}  // namespace

const GenerationRun::Participant& GenerationRun::At(Endpoint endpoint) const {
  const std::vector<Member>& role =
      endpoint.role == Role::kWorker ? generation_.workers : generation_.servers;
  return participants_.at(role.at(static_cast<std::size_t>(endpoint.rank)).id);
}

GenerationRun::Participant& GenerationRun::At(Endpoint endpoint) {
  return const_cast<Participant&>(std::as_const(*this).At(endpoint));
}

// The server that has the replica of this one's shard: the next one, if there is another.
std::optional<Endpoint> GenerationRun::HeirOf(Endpoint endpoint) const {
  const auto servers = static_cast<Rank>(generation_.servers.size());
  if (endpoint.role != Role::kServer || !task_.replicated || servers < 2) {
    return std::nullopt;
  }
  return Endpoint{.role = Role::kServer, .rank = (endpoint.rank + 1) % servers};
}

std::string GenerationRun::WhyNotWithout(const Participant& lost) const {
  if (!task_.continues || !running_) {
    return "the run stops with it";
  }
  if (lost.member.endpoint.role == Role::kWorker) {
    const bool alone =
        std::none_of(generation_.workers.begin(), generation_.workers.end(), [&](const Member& m) {
          const Participant& other = At(m.endpoint);
          return !other.lost && other.member.endpoint != lost.member.endpoint;
        });
    return alone ? "no worker is left" : "";
  }
  const std::optional<Endpoint> heir = HeirOf(lost.member.endpoint);
  if (!heir) {
    return "its part of the parameters is lost since the run began: a single server has no "
           "replica, and there is no snapshot";
  }
  if (At(*heir).lost) {
    return absl::StrFormat("its part of the parameters is lost, with the replica that %s had",
                           NameOf(*heir));
  }
  if (lost.inherited) {
    return absl::StrFormat(
        "the part of the parameters that it had taken over from server %d is lost: that had no "
        "second replica",
        *lost.inherited);
  }
  return "";
}

void GenerationRun::GoOnWithout(Participant& lost, const Loss& loss, Actions& actions) {
  const Endpoint gone = lost.member.endpoint;
  lost.lost = true;
  const std::optional<Endpoint> heir = HeirOf(gone);
  Log(LogLevel::kWarning, "%s was lost %s: %s; %s", NameOf(gone), Place(LatestWorkerStep()),
      loss.evidence.what,
      heir ? NameOf(*heir) + " goes on with its shard" : "the others go on without it");
  inquiry_.Settle(gone);
  suspecting_ = !inquiry_.empty();
  v1::SurvivedLoss& record = losses_.emplace_back();
  record.set_role(ToProto(gone.role));
  record.set_rank(gone.rank);
  record.set_what(loss.evidence.what);
  record.set_step(LatestWorkerStep());
  if (heir) {
    At(*heir).inherited = gone.rank;
    record.set_heir(heir->rank);
  }
  for (const auto& [id, participant] : participants_) {
    if (participant.lost) {
      continue;
    }
    v1::CoordinatorMessage message;
    v1::MemberGone& told = *message.mutable_gone();
    told.set_generation(generation_.number);
    told.set_role(ToProto(gone.role));
    told.set_rank(gone.rank);
    if (heir) {
      told.set_heir(heir->rank);
    }
    Send(actions, id, std::move(message));
  }
  for (auto& [name, barrier] : barriers_) {
    if (gone.role == Role::kWorker) {
      Release(name, barrier.Leave(gone.rank), actions);
    }
  }
  EndIfAllAreDone();
}

}  // namespace ranklab::coordinator
