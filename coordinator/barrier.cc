#include "coordinator/barrier.h"

#include <utility>

#include "core/check.h"

namespace ranklab::coordinator {

Barrier::Barrier(int workers) : workers_(workers) {
  RANKLAB_CHECK(workers >= 1, "%d workers", workers);
}

std::vector<Endpoint> Barrier::Arrive(Endpoint who, std::string token) {
  RANKLAB_CHECK(who.role == Role::kServer || (who.rank >= 0 && who.rank < workers_),
                "%s at a barrier of %d workers", NameOf(who), workers_);
  if (!arrived_.insert(who).second) {
    return {};
  }
  if (open_) {
    return {who};  // only a server can come after the last worker
  }
  if (who.role == Role::kWorker && !token.empty()) {
    tokens_.resize(static_cast<std::size_t>(workers_));
    tokens_[static_cast<std::size_t>(who.rank)] = std::move(token);
  }
  open_ = complete();
  return open_ ? std::vector<Endpoint>(arrived_.begin(), arrived_.end()) : std::vector<Endpoint>{};
}

std::vector<Endpoint> Barrier::Leave(Rank worker) {
  if (!gone_.insert(worker).second || open_) {
    return {};
  }
  open_ = complete();
  return open_ ? std::vector<Endpoint>(arrived_.begin(), arrived_.end()) : std::vector<Endpoint>{};
}

bool Barrier::complete() const { return MissingWorkers().empty(); }

std::vector<Endpoint> Barrier::MissingWorkers() const {
  std::vector<Endpoint> missing;
  for (Rank rank = 0; rank < workers_; ++rank) {
    if (const Endpoint worker{.role = Role::kWorker, .rank = rank};
        !arrived_.contains(worker) && !gone_.contains(rank)) {
      missing.push_back(worker);
    }
  }
  return missing;
}

}  // namespace ranklab::coordinator
