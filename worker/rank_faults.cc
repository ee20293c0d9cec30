#include "worker/rank_faults.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include <absl/strings/str_format.h>

#include "core/overloaded.h"
#include "core/seconds.h"

namespace ranklab::worker {
namespace {

using experiment::Heal;
using experiment::Kill;
using experiment::Pause;
using experiment::PlantNaN;
using experiment::ShapeLink;
using experiment::SlowPhase;

bool PauseFallsOn(const Pause& pause, Step at_step, Step step) {
  const Step since = step - at_step;
  return pause.every_steps == 0 ? since == 0 : since % pause.every_steps == 0;
}

Nanos PhaseOf(const experiment::StepRecord& record, experiment::Phase phase) {
  switch (phase) {
    case experiment::Phase::kInput:
      return record.input;
    case experiment::Phase::kForward:
      return record.forward;
    case experiment::Phase::kBackward:
      return record.backward;
    case experiment::Phase::kOptimizer:
      return record.optimizer;
    case experiment::Phase::kExchange:
      return record.exposed;
  }
  return Nanos::zero();
}

}  // namespace

bool IsKill(const FaultChange& change) {
  return std::holds_alternative<Kill>(change.injection.effect);
}

bool IsOfLink(const FaultChange& change) {
  return std::holds_alternative<ShapeLink>(change.injection.effect);
}

Nanos Stretch::Of(Nanos modelled) const {
  return Nanos(std::llround(static_cast<double>(modelled.count()) * factor)) + extra;
}

std::string WhatActed(const FaultChange& change, Rank rank,
                      std::span<const experiment::StepRecord> records, double time_scale) {
  const experiment::StepRecord& now = records.back();
  return std::visit(
      Overloaded{
          [&](const SlowPhase& slow) {
            const double after = SecondsOf(PhaseOf(now, slow.phase)) / time_scale;
            if (records.size() < 2) {
              return absl::StrFormat("%.6f s", after);
            }
            const double before = SecondsOf(PhaseOf(records[records.size() - 2], slow.phase));
            return absl::StrFormat("%.6f s, %.6f s in the step before", after, before / time_scale);
          },
          [&](const Pause&) {
            const Nanos rest = now.step_time - now.input - now.forward - now.backward -
                               now.exposed - now.optimizer;
            return absl::StrFormat("%.6f s outside every phase of the step",
                                   SecondsOf(rest) / time_scale);
          },
          [&](const ShapeLink& link) {
            const Endpoint self{Role::kWorker, rank};
            std::string ways;
            if (const auto peer = link.WayTo(self)) {
              ways = " to " + NameOf(*peer);
            }
            if (const auto server = link.WayFrom(self)) {
              ways += (ways.empty() ? " from " : " and from ") + NameOf(*server);
            }
            return absl::StrFormat("%s on the way%s", change.begins ? "in force" : "ended", ways);
          },
          [&](const auto&) { return std::string(change.begins ? "in force" : "ended"); },
      },
      change.injection.effect);
}

RankFaults::RankFaults(Rank rank, int workers, const experiment::Scenario& scenario)
    : rank_(rank), workers_(workers) {
  for (const experiment::Injection& injection : scenario.injections) {
    active_.push_back({.id = 0, .injection = injection});
  }
}

void RankFaults::Add(std::uint64_t id, experiment::Injection injection) {
  absl::MutexLock lock(&mutex_);
  injection.at_step = step_ + 1;
  active_.push_back({.id = id, .injection = std::move(injection)});
}

bool RankFaults::HoldsAt(const Active& active, Step step) const {
  const experiment::Injection& injection = active.injection;
  if (active.over || step < injection.at_step ||
      (injection.until_step > 0 && step > injection.until_step)) {
    return false;
  }
  return std::visit(
      Overloaded{
          [&](const SlowPhase& slow) {
            const Step turns =
                slow.rotate_every > 0 ? (step - injection.at_step) / slow.rotate_every : 0;
            return (slow.rank + turns) % workers_ == rank_;
          },
          [&](const Pause& pause) {
            return pause.rank == rank_ && PauseFallsOn(pause, injection.at_step, step);
          },
          [&](const Kill& kill) { return kill.rank == rank_; },
          [&](const PlantNaN& nan) { return nan.rank == rank_; },
          [&](const ShapeLink& link) {
            const Endpoint self{Role::kWorker, rank_};
            return link.WayTo(self).has_value() || link.WayFrom(self).has_value();
          },
          [](const Heal&) { return true; },
          [](const auto&) { return false; },
      },
      injection.effect);
}

std::vector<FaultChange> RankFaults::BeginStep(Step step) {
  absl::MutexLock lock(&mutex_);
  step_ = step;
  std::vector<FaultChange> changes;
  const auto end = [&](Active& active) {
    if (active.in_force) {
      active.in_force = false;
      changes.push_back({active.id, active.injection, false});
    }
  };
  for (std::size_t i = 0; i < active_.size(); ++i) {
    Active& active = active_[i];
    if (!HoldsAt(active, step)) {
      end(active);
      continue;
    }
    if (std::holds_alternative<Heal>(active.injection.effect)) {
      for (std::size_t j = 0; j < i; ++j) {
        end(active_[j]);
        active_[j].over = true;
      }
      active.over = true;
      changes.push_back({active.id, active.injection, true});
      continue;
    }
    if (!active.in_force) {
      active.in_force = true;
      changes.push_back({active.id, active.injection, true});
    }
  }
  return changes;
}

Stretch RankFaults::StretchOf(experiment::Phase phase) const {
  absl::MutexLock lock(&mutex_);
  Stretch stretch;
  for (const Active& active : active_) {
    const auto* slow = std::get_if<SlowPhase>(&active.injection.effect);
    if (active.in_force && slow != nullptr && slow->phase == phase) {
      stretch.factor *= slow->factor;
      stretch.extra += slow->extra;
    }
  }
  return stretch;
}

Nanos RankFaults::PauseOf() const {
  absl::MutexLock lock(&mutex_);
  Nanos total{};
  for (const Active& active : active_) {
    const auto* pause = std::get_if<Pause>(&active.injection.effect);
    if (active.in_force && pause != nullptr) {
      total += pause->duration;
    }
  }
  return total;
}

std::vector<ShapeLink> RankFaults::Links() const {
  absl::MutexLock lock(&mutex_);
  std::vector<ShapeLink> links;
  for (const Active& active : active_) {
    const auto* link = std::get_if<ShapeLink>(&active.injection.effect);
    if (active.in_force && link != nullptr) {
      links.push_back(*link);
    }
  }
  return links;
}

template <typename Effect>
bool RankFaults::AnyInForce() const {
  absl::MutexLock lock(&mutex_);
  return std::any_of(active_.begin(), active_.end(), [](const Active& active) {
    return active.in_force && std::holds_alternative<Effect>(active.injection.effect);
  });
}

bool RankFaults::Killed() const { return AnyInForce<Kill>(); }

bool RankFaults::GradientsAreNaN() const { return AnyInForce<PlantNaN>(); }

}  // namespace ranklab::worker
