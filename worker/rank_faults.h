// What is wrong with this rank, step by step: a lab's scenario and live injections as one answer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include "core/units.h"
#include "experiment/run_record.h"
#include "experiment/scenario.h"

namespace ranklab::worker {

// How a phase of one step is stretched: time x factor + extra, in modelled time.
struct Stretch {
  double factor = 1.0;
  Nanos extra{};
  bool none() const { return factor == 1.0 && extra == Nanos::zero(); }
  Nanos Of(Nanos modelled) const;  // factor to the nearest nanosecond
};

// An injection that begins or ends with a step, for the log.
struct FaultChange {
  std::uint64_t id = 0;  // 0: from the lab's scenario
  experiment::Injection injection;
  bool begins = true;
};

bool IsKill(const FaultChange& change);
bool IsOfLink(const FaultChange& change);

// What an injection did on worker `rank`, as measured in the step where it began or ended, beside
// the step before: the last of `records`, whose times are modelled time x time_scale. Requires: a
// record.
std::string WhatActed(const FaultChange& change, Rank rank,
                      std::span<const experiment::StepRecord> records, double time_scale);

// Safe from any thread: the training thread asks, the loop adds.
class RankFaults {
 public:
  RankFaults(Rank rank, int workers, const experiment::Scenario& scenario);

  // A live injection: holds from the next step on. A Heal ends all that are in force.
  void Add(std::uint64_t id, experiment::Injection injection);

  // To be called first in each step; returns what begins and ends with it on this rank.
  std::vector<FaultChange> BeginStep(Step step);

  // Of the step last begun.
  Stretch StretchOf(experiment::Phase phase) const;
  Nanos PauseOf() const;  // at the start of the step, modelled time
  bool Killed() const;
  bool GradientsAreNaN() const;
  std::vector<experiment::ShapeLink> Links() const;  // of this rank, in the order of their entries

 private:
  struct Active {
    std::uint64_t id = 0;
    experiment::Injection injection;
    bool in_force = false;
    bool over = false;
  };
  bool HoldsAt(const Active& active, Step step) const;
  template <typename Effect>
  bool AnyInForce() const;

  const Rank rank_;
  const int workers_;
  mutable absl::Mutex mutex_;
  std::vector<Active> active_ ABSL_GUARDED_BY(mutex_);
  Step step_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace ranklab::worker
