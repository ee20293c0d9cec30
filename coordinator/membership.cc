#include "coordinator/membership.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/seconds.h"
#include "core/status.h"

namespace ranklab::coordinator {
namespace {

const char* NameOf(Role role) { return role == Role::kWorker ? "worker" : "server"; }

std::string TextOf(const Contact& contact) {
  return absl::StrFormat("%s:%d", contact.host, contact.grpc_port);
}

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || host.starts_with("127.");
}

std::string Count(int count, Role role) {
  return absl::StrFormat("%d %s%s", count, NameOf(role), count == 1 ? "" : "s");
}

}  // namespace

std::vector<Member> Generation::All() const {
  std::vector<Member> all = workers;
  all.insert(all.end(), servers.begin(), servers.end());
  return all;
}

std::optional<Endpoint> Generation::Find(MemberId member) const {
  for (const Member& candidate : All()) {
    if (candidate.id == member) {
      return candidate.endpoint;
    }
  }
  return std::nullopt;
}

std::string NameOf(const PoolMember& member) {
  return absl::StrFormat("%s member %d at %s", NameOf(member.request.role), member.id,
                         TextOf(member.request.contact));
}

Membership::Membership(MembershipOptions options) : options_(std::move(options)) {}

absl::StatusOr<MemberId> Membership::Join(const JoinRequest& request, Nanos now) {
  if (request.build != options_.build) {
    return FailedPrecondition("%s at %s is build \"%s\", the coordinator is build \"%s\"",
                              NameOf(request.role), TextOf(request.contact), request.build,
                              options_.build);
  }
  if (request.wanted_rank && *request.wanted_rank < 0) {
    return InvalidArgument("%s at %s wants rank %d; ranks start at 0", NameOf(request.role),
                           TextOf(request.contact), *request.wanted_rank);
  }
  for (const auto& [id, member] : pool_) {
    if (request.incarnation != 0 && member.request.incarnation == request.incarnation) {
      return AlreadyExists("the process at %s is in the pool already, as %s",
                           TextOf(request.contact), NameOf(member));
    }
    if (request.wanted_rank && member.request.role == request.role &&
        member.request.wanted_rank == request.wanted_rank) {
      return AlreadyExists("rank %d is taken by %s; %s at %s wants it too", *request.wanted_rank,
                           NameOf(member), NameOf(request.role), TextOf(request.contact));
    }
  }
  const MemberId id = next_id_++;
  pool_[id] = PoolMember{.id = id, .request = request, .last_seen = now, .heartbeat = {}};
  return id;
}

void Membership::Beat(MemberId member, const Heartbeat& heartbeat, Nanos now) {
  const auto found = pool_.find(member);
  if (found == pool_.end()) {
    return;
  }
  found->second.last_seen = std::max(found->second.last_seen, now);
  found->second.heartbeat = heartbeat;
}

void Membership::ReportLost(MemberId member, const Evidence& evidence) {
  const auto found = pool_.find(member);
  if (found == pool_.end()) {
    return;
  }
  unannounced_.push_back({.member = std::move(found->second), .evidence = evidence});
  pool_.erase(found);
}

void Membership::Leave(MemberId member) { pool_.erase(member); }

absl::StatusOr<Generation> Membership::Form(int workers, int servers) {
  RANKLAB_CHECK(workers >= 1 && servers >= 0, "%d workers, %d servers", workers, servers);
  if (absl::Status enough = EnoughMembers(*this, workers, servers); !enough.ok()) {
    return enough;
  }
  Generation formed{.number = generations_ + 1,
                    .workers = Ranked(Role::kWorker, workers),
                    .servers = Ranked(Role::kServer, servers)};
  if (absl::Status reachable = CheckReachable(formed.All()); !reachable.ok()) {
    return reachable;
  }
  ++generations_;
  return formed;
}

// 127.0.0.1 is another process on every host, so that a peer elsewhere would dial a stranger.
absl::Status Membership::CheckReachable(const std::vector<Member>& members) const {
  for (const Member& member : members) {
    const PoolMember& at_home = pool_.at(member.id);
    if (!IsLoopback(member.contact.host) || at_home.request.loopback.empty()) {
      continue;
    }
    for (const Member& peer : members) {
      const PoolMember& other = pool_.at(peer.id);
      if (other.request.loopback != at_home.request.loopback) {
        return InvalidArgument(
            "%s cannot be reached by %s, which is on another host; start it with --advertise HOST",
            NameOf(at_home), NameOf(other));
      }
    }
  }
  return absl::OkStatus();
}

std::vector<Member> Membership::Ranked(Role role, int count) const {
  std::vector<const PoolMember*> ranked(static_cast<std::size_t>(count), nullptr);
  std::vector<const PoolMember*> no_wish;
  std::vector<const PoolMember*> cannot_have_it;
  for (const auto& [id, member] : pool_) {
    if (member.request.role != role) {
      continue;
    }
    if (!member.request.wanted_rank) {
      no_wish.push_back(&member);
    } else if (*member.request.wanted_rank < count) {
      ranked[static_cast<std::size_t>(*member.request.wanted_rank)] = &member;
    } else {
      cannot_have_it.push_back(&member);
    }
  }
  no_wish.insert(no_wish.end(), cannot_have_it.begin(), cannot_have_it.end());
  auto next = no_wish.begin();
  std::vector<Member> members;
  for (const PoolMember* member : ranked) {
    if (member == nullptr) {
      RANKLAB_CHECK(next != no_wish.end(), "%d members of a role were counted", count);
      member = *next++;
    }
    const auto rank = static_cast<Rank>(members.size());
    members.push_back({.id = member->id,
                       .endpoint = {.role = role, .rank = rank},
                       .contact = member->request.contact});
  }
  return members;
}

std::vector<Loss> Membership::Tick(Nanos now) {
  if (last_tick_ && now - *last_tick_ > options_.own_stall_after) {
    for (auto& [id, member] : pool_) {
      member.last_seen = std::min(now, member.last_seen + (now - *last_tick_));
    }
  }
  last_tick_ = now;
  std::vector<MemberId> silent;
  for (const auto& [id, member] : pool_) {
    if (now - member.last_seen >= options_.suspect_after) {
      silent.push_back(id);
    }
  }
  for (const MemberId id : silent) {
    const double seconds = SecondsOf(now - pool_.at(id).last_seen);
    ReportLost(id, {.reporter = 0, .what = absl::StrFormat("no heartbeat for %.1f s", seconds)});
  }
  return std::exchange(unannounced_, {});
}

int Membership::CountOf(Role role) const {
  return static_cast<int>(std::count_if(pool_.begin(), pool_.end(), [role](const auto& entry) {
    return entry.second.request.role == role;
  }));
}

int Membership::LaunchedOf(Role role) const {
  int launched = 0;
  for (const auto& [id, member] : pool_) {
    if (member.request.role == role) {
      launched = std::max(launched, member.request.launched);
    }
  }
  return launched;
}

const PoolMember* Membership::Find(MemberId member) const {
  const auto found = pool_.find(member);
  return found == pool_.end() ? nullptr : &found->second;
}

absl::Status EnoughMembers(const Membership& membership, int workers, int servers) {
  const int have_workers = membership.CountOf(Role::kWorker);
  const int have_servers = membership.CountOf(Role::kServer);
  if (have_workers >= workers && have_servers >= servers) {
    return absl::OkStatus();
  }
  if (servers == 0) {
    return FailedPrecondition("needs %s, %d joined", Count(workers, Role::kWorker), have_workers);
  }
  return FailedPrecondition("needs %s and %s; %s and %s joined", Count(workers, Role::kWorker),
                            Count(servers, Role::kServer), Count(have_workers, Role::kWorker),
                            Count(have_servers, Role::kServer));
}

}  // namespace ranklab::coordinator
