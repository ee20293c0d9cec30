#include "worker/rank_faults.h"

#include <utility>
#include <variant>

#include "core/overloaded.h"

namespace ranklab::worker {
namespace {

using experiment::Heal;
using experiment::Kill;
using experiment::Pause;
using experiment::ShapeLink;
using experiment::SlowPhase;

bool PauseFallsOn(const Pause& pause, Step at_step, Step step) {
  const Step since = step - at_step;
  return pause.every_steps == 0 ? since == 0 : since % pause.every_steps == 0;
}

}  // namespace

bool IsKill(const FaultChange& change) {
  return std::holds_alternative<Kill>(change.injection.effect);
}

bool IsOfLink(const FaultChange& change) {
  return std::holds_alternative<ShapeLink>(change.injection.effect);
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

bool RankFaults::Killed() const {
  absl::MutexLock lock(&mutex_);
  for (const Active& active : active_) {
    if (active.in_force && std::holds_alternative<Kill>(active.injection.effect)) {
      return true;
    }
  }
  return false;
}

}  // namespace ranklab::worker
