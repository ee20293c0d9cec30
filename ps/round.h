// One synchronous step on a shard: who has ended it, and in which order their gradients are summed.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/units.h"

namespace ranklab::ps {

// In which order a synchronous step's gradients are summed. kRank sums them in rank order whatever
// the order in which workers end, and so is reproducible bit for bit: the left fold
// ((g0 + g1) + g2) + ...
enum class Order : std::uint8_t { kArrival, kRank };

struct StepEnd {
  double weight = 0.0;  // samples or tokens that the worker's gradients stand for
  bool overflow = false;
};

// Open until everyone alive has ended, or all but so many backup workers have, then complete, then
// closed (its sum is being applied) until it is opened for the next step. Pure.
// Source of backup workers: Chen et al., "Revisiting distributed synchronous SGD", ICLR 2016
// workshop.
class Round {
 public:
  // Requires: backup_workers > 0 only with kArrival.
  Round(int worker_count, Order order, int backup_workers = 0);

  // Requires: open; the worker is live and has not ended this round.
  void End(Rank worker, const StepEnd& end);

  // A worker that has left or was lost no longer holds the round up; if it has ended, its gradients
  // stay in the sum.
  void Remove(Rank worker);

  // Whose gradients are to be added next, each once; none while the order demands a wait.
  std::optional<Rank> NextToFold();

  // Enough live workers have ended, at least one did, and all gradients were handed to be folded.
  bool complete() const;

  void Close();
  void Open();

  bool closed() const { return closed_; }
  // Of those that were handed to be folded, in that order: sum, any.
  double weight() const { return weight_; }
  bool overflow() const { return overflow_; }

 private:
  struct Entry {
    bool live = true;
    std::optional<StepEnd> end;
  };

  Rank Take(Rank worker);

  bool enough_ended() const;

  Order order_;
  std::size_t needed_;          // ends that complete the round, if so many are alive
  std::vector<Entry> entries_;  // [worker]
  std::deque<Rank> arrived_;    // kArrival: ended and not yet folded
  std::size_t next_rank_ = 0;   // kRank: all below were folded or will never come
  bool any_folded_ = false;
  bool closed_ = false;
  double weight_ = 0.0;
  bool overflow_ = false;
};

}  // namespace ranklab::ps
