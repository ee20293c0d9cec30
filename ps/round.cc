#include "ps/round.h"

#include <algorithm>

#include "core/check.h"

namespace ranklab::ps {

Round::Round(int worker_count, Order order, int backup_workers)
    : order_(order),
      needed_(static_cast<std::size_t>(worker_count - backup_workers)),
      entries_(static_cast<std::size_t>(worker_count)) {
  RANKLAB_CHECK(backup_workers >= 0 && backup_workers < worker_count, "%d backup workers of %d",
                backup_workers, worker_count);
  RANKLAB_CHECK(backup_workers == 0 || order == Order::kArrival);
}

void Round::End(Rank worker, const StepEnd& end) {
  Entry& entry = entries_.at(static_cast<std::size_t>(worker));
  RANKLAB_CHECK(!closed_ && entry.live && !entry.end, "worker %d cannot end the round", worker);
  entry.end = end;
  if (order_ == Order::kArrival) {
    arrived_.push_back(worker);
  }
}

void Round::Remove(Rank worker) { entries_.at(static_cast<std::size_t>(worker)).live = false; }

std::optional<Rank> Round::NextToFold() {
  if (order_ == Order::kArrival) {
    if (arrived_.empty()) {
      return std::nullopt;
    }
    const Rank worker = arrived_.front();
    arrived_.pop_front();
    return Take(worker);
  }
  for (; next_rank_ < entries_.size(); ++next_rank_) {
    const Entry& entry = entries_[next_rank_];
    if (entry.end) {
      return Take(static_cast<Rank>(next_rank_++));
    }
    if (entry.live) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

Rank Round::Take(Rank worker) {
  const StepEnd& end = *entries_.at(static_cast<std::size_t>(worker)).end;
  weight_ += end.weight;
  overflow_ = overflow_ || end.overflow;
  any_folded_ = true;
  return worker;
}

bool Round::enough_ended() const {
  const auto ended = std::count_if(entries_.begin(), entries_.end(),
                                   [](const Entry& entry) { return entry.end.has_value(); });
  return static_cast<std::size_t>(ended) >= needed_ ||
         std::all_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return entry.end.has_value() || !entry.live; });
}

bool Round::complete() const {
  const bool all_folded =
      order_ == Order::kArrival ? arrived_.empty() : next_rank_ == entries_.size();
  return !closed_ && enough_ended() && all_folded && any_folded_;
}

void Round::Close() {
  RANKLAB_CHECK(complete());
  closed_ = true;
}

void Round::Open() {
  RANKLAB_CHECK(closed_);
  for (Entry& entry : entries_) {
    entry.end.reset();
  }
  next_rank_ = 0;
  any_folded_ = false;
  closed_ = false;
  weight_ = 0.0;
  overflow_ = false;
}

}  // namespace ranklab::ps
