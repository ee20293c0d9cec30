#include "report/sentences.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include <absl/strings/str_format.h>

#include "report/comparison.h"
#include "report/figures.h"
#include "report/scaling_limit.h"

namespace ranklab::report {
namespace {

using experiment::CellSummary;
using experiment::Lab;
using experiment::Part;

// What the part's scenario makes slow, if it is only that.
std::optional<experiment::SlowPhase> SlowRankOf(const Part& part) {
  for (const experiment::Cell& cell : part.cells) {
    for (const experiment::Injection& injection : cell.spec.scenario.injections) {
      if (const auto* slow = std::get_if<experiment::SlowPhase>(&injection.effect)) {
        return *slow;
      }
    }
  }
  return std::nullopt;
}

bool HasScenario(const Part& part) {
  return std::any_of(part.cells.begin(), part.cells.end(), [](const experiment::Cell& cell) {
    return !cell.spec.scenario.injections.empty();
  });
}

std::string On(const std::string& fabric) {
  return fabric == "native" ? "this machine's network" : fabric;
}

// ---- parameter server against ring --------------------------------------------------------------

void CompareWithRing(const Part& part, const std::vector<Rivals>& groups,
                     std::vector<std::string>& sentences) {
  int workers = 0;
  for (const Rivals& group : groups) {
    if (group.Find("ps") != nullptr && group.Find("ring") != nullptr) {
      workers = std::max(workers, group.workers);
    }
  }
  std::vector<std::string> loses;
  std::vector<std::string> wins;
  std::vector<std::string> even;
  for (const Rivals& group : groups) {
    const CellSummary* ps = group.Find("ps");
    const CellSummary* ring = group.Find("ring");
    if (workers < 2 || group.workers != workers || ps == nullptr || ring == nullptr) {
      continue;
    }
    const auto figures = [&](double factor) {
      return absl::StrFormat("%s by a factor of %s (%s against %s samples/s)", On(group.fabric),
                             PrintFactor(factor), PrintRate(ps->samples_per_second.median),
                             PrintRate(ring->samples_per_second.median));
    };
    switch (Compare(*ps, *ring)) {
      case Difference::kSlower:
        loses.push_back(figures(SpeedUp(*ring, *ps)));
        break;
      case Difference::kFaster:
        wins.push_back(figures(SpeedUp(*ps, *ring)));
        break;
      case Difference::kNone:
        even.push_back(On(group.fabric));
        break;
      case Difference::kUnknown:
        break;
    }
  }
  const std::string who =
      absl::StrFormat("%s: with %d workers the synchronous parameter server", part.name, workers);
  if (!loses.empty()) {
    sentences.push_back(who + " loses to the ring on " + Joined(loses) + ".");
  }
  if (!wins.empty()) {
    sentences.push_back(who + " beats the ring on " + Joined(wins) + ".");
  }
  if (!even.empty()) {
    sentences.push_back(who + " and the ring differ by no more than the repeats do on " +
                        Joined(even) + ".");
  }
}

// ---- networks -----------------------------------------------------------------------------------

void CompareNetworks(const Part& part, const std::vector<Rivals>& groups,
                     std::vector<std::string>& sentences) {
  int workers = 0;
  for (const Rivals& group : groups) {
    workers = std::max(workers, group.workers);
  }
  std::map<std::string, std::vector<const CellSummary*>> of_exchange;
  for (const Rivals& group : groups) {
    for (const CellSummary* cell : group.cells) {
      if (group.workers == workers && workers > 1 && cell->efficiency > 0) {
        of_exchange[cell->exchange].push_back(cell);
      }
    }
  }
  for (auto& [exchange, cells] : of_exchange) {
    const auto [least, most] = std::minmax_element(
        cells.begin(), cells.end(),
        [](const auto* a, const auto* b) { return a->efficiency < b->efficiency; });
    if ((*least)->fabric == (*most)->fabric || Compare(**most, **least) != Difference::kFaster) {
      continue;
    }
    sentences.push_back(absl::StrFormat(
        "%s: with %d workers, %s keeps an efficiency of %s on %s and of %s on %s.", part.name,
        workers, exchange, PrintShare((*most)->efficiency), On((*most)->fabric),
        PrintShare((*least)->efficiency), On((*least)->fabric)));
  }
}

// ---- staleness against a slow rank --------------------------------------------------------------

struct StalenessVerdict {
  std::string name;  // "staleness 2", "no bound"
  Difference difference = Difference::kUnknown;
  double factor = 1;
};

std::vector<StalenessVerdict> JudgeStaleness(const std::vector<Rivals>& groups) {
  std::vector<StalenessVerdict> verdicts;
  for (const Rivals& group : groups) {
    const CellSummary* synchronous = group.Find("ps");
    for (const CellSummary* cell : group.cells) {
      const bool bounded = cell->exchange.starts_with("ps staleness ");
      if (synchronous == nullptr || (!bounded && cell->exchange != "ps async")) {
        continue;
      }
      const Difference difference = Compare(*cell, *synchronous);
      if (difference != Difference::kUnknown) {
        verdicts.push_back({bounded ? cell->exchange.substr(3) : "no bound", difference,
                            SpeedUp(*cell, *synchronous)});
      }
    }
    if (!verdicts.empty()) {
      break;  // one group speaks for the part
    }
  }
  return verdicts;
}

std::string Effect(const StalenessVerdict& verdict) {
  switch (verdict.difference) {
    case Difference::kFaster:
      return absl::StrFormat("%s gives %s times its samples/s", verdict.name,
                             PrintFactor(verdict.factor));
    case Difference::kSlower:
      return absl::StrFormat("%s gives only %s times its samples/s", verdict.name,
                             PrintFactor(verdict.factor));
    default:
      return verdict.name + " gains nothing beyond the spread of the repeats";
  }
}

void DescribeStaleness(const Part& part, const experiment::SlowPhase& slow,
                       const std::vector<StalenessVerdict>& verdicts,
                       std::vector<std::string>& sentences) {
  std::vector<std::string> effects;
  for (const StalenessVerdict& verdict : verdicts) {
    effects.push_back(Effect(verdict));
  }
  const std::string who =
      slow.rotate_every > 0
          ? "a slowness that moves to the next rank every " +
                (slow.rotate_every == 1 ? "step" : absl::StrFormat("%d steps", slow.rotate_every))
          : absl::StrFormat("rank %d always slow", slow.rank);
  sentences.push_back(absl::StrFormat("%s: with %s, against the synchronous parameter server, %s.",
                                      part.name, who, Joined(effects)));
}

// "no bound (1.80 times) helped and staleness 2 (1.05 times) hardly".
std::string WhatHelped(const std::vector<StalenessVerdict>& verdicts) {
  constexpr double kHardly = 1.1;
  std::vector<std::string> helped;
  std::vector<std::string> hardly;
  for (const StalenessVerdict& verdict : verdicts) {
    if (verdict.difference == Difference::kFaster) {
      (verdict.factor < kHardly ? hardly : helped)
          .push_back(absl::StrFormat("%s (%s times)", verdict.name, PrintFactor(verdict.factor)));
    }
  }
  const std::string text = (helped.empty() ? "no staleness bound" : Joined(helped)) + " helped";
  return hardly.empty() ? text : text + " and " + Joined(hardly) + " hardly";
}

// Which bounds helped in the one case and in the other; only when both were run.
void CompareSlowness(const std::vector<StalenessVerdict>& stays,
                     const std::vector<StalenessVerdict>& rotates,
                     std::vector<std::string>& sentences) {
  if (stays.empty() || rotates.empty()) {
    return;
  }
  sentences.push_back(absl::StrFormat(
      "Against a rank that is always slow, %s; against a slowness that rotates, %s.",
      WhatHelped(stays), WhatHelped(rotates)));
}

// ---- start-up -----------------------------------------------------------------------------------

// Of the cells with the most workers, which take longest.
void DescribeStartUp(std::span<const CellSummary> cells, std::vector<std::string>& sentences) {
  int workers = 0;
  for (const CellSummary& cell : cells) {
    workers = std::max(workers, cell.workers);
  }
  std::vector<double> medians;
  double most = 0;
  for (const CellSummary& cell : cells) {
    if (cell.workers == workers && cell.start_up_seconds.most > 0) {
      medians.push_back(cell.start_up_seconds.median);
      most = std::max(most, cell.start_up_seconds.most);
    }
  }
  if (!medians.empty()) {
    sentences.push_back(absl::StrFormat(
        "Start-up: with %d worker%s, the first step began %s after the cluster was free (the last "
        "join, or the end of the run before), at most %s.",
        workers, workers == 1 ? "" : "s", PrintSeconds(experiment::SpreadOf(medians).median),
        PrintSeconds(most)));
  }
}

}  // namespace

std::vector<std::string> WriteSentences(const Lab& lab, std::span<const CellSummary> cells) {
  std::vector<std::string> sentences;
  std::vector<StalenessVerdict> stays;
  std::vector<StalenessVerdict> rotates;
  for (const Part& part : lab.parts) {
    const std::vector<Rivals> groups = GroupRivals(part.name, cells);
    if (!HasScenario(part)) {
      CompareWithRing(part, groups, sentences);
      CompareNetworks(part, groups, sentences);
      for (std::string& limit : DescribeScalingLimits(part.name, cells)) {
        sentences.push_back(std::move(limit));
      }
      continue;
    }
    const std::optional<experiment::SlowPhase> slow = SlowRankOf(part);
    const std::vector<StalenessVerdict> verdicts = JudgeStaleness(groups);
    if (slow && !verdicts.empty()) {
      DescribeStaleness(part, *slow, verdicts, sentences);
      (slow->rotate_every > 0 ? rotates : stays) = verdicts;
    }
  }
  CompareSlowness(stays, rotates, sentences);
  DescribeStartUp(cells, sentences);
  return sentences;
}

}  // namespace ranklab::report
