// Expectations against the cells of a run.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "core/check.h"
#include "core/status.h"
#include "experiment/expectation.h"
#include "experiment/metrics.h"
#include "experiment/quantity.h"

namespace ranklab::experiment {
namespace {

using Claim = ParsedExpectation::Claim;
using Comparison = ParsedExpectation::Comparison;

// One thing that the claim is about: a cell, or the mean of several.
struct Judged {
  std::string label{};
  std::optional<double> value{};  // of a metric
  bool held = false;
  std::string text{};
};

bool Picks(const ParsedExpectation& expectation, const CellSummary& cell) {
  return std::all_of(expectation.where.begin(), expectation.where.end(),
                     [&](const ParsedExpectation::Condition& condition) {
                       const auto setting = SettingOf(cell, condition.path);
                       return (setting && SameSetting(*setting, condition.value)) ==
                              condition.equal;
                     });
}

bool Holds(Comparison comparison, double value, double bound) {
  switch (comparison) {
    case Comparison::kAbove:
      return value > bound;
    case Comparison::kAtLeast:
      return value >= bound;
    case Comparison::kBelow:
      return value < bound;
    case Comparison::kAtMost:
      return value <= bound;
    case Comparison::kEqual:
      return value == bound;
  }
  RANKLAB_CHECK(false, "comparison %d", static_cast<int>(comparison));
  return false;
}

Judged FindMetricOf(const ParsedExpectation& expectation, std::string label,
                    std::optional<double> value) {
  Judged outcome{.label = std::move(label), .value = value};
  outcome.held = value && Holds(expectation.comparison, *value, expectation.bound);
  outcome.text =
      value ? absl::StrFormat("%s %.4g", expectation.metric, *value) : "no " + expectation.metric;
  return outcome;
}

Judged FindHashOf(const ParsedExpectation& expectation, const CellSummary& cell) {
  Judged outcome{.label = LabelOf(cell)};
  if (expectation.claim == Claim::kHashAcrossRanks) {
    outcome.held = cell.hash_equal_across_ranks;
    outcome.text = outcome.held ? "equal" : "differs between ranks";
  } else {
    outcome.held = cell.hash_equal_across_repeats;
    outcome.text = outcome.held       ? "equal"
                   : cell.repeats < 2 ? "only one repeat"
                                      : "differs between repeats";
  }
  return outcome;
}

// The cell's label without what the mean runs over: cells with the same one are averaged.
std::string LabelWithout(CellSummary cell, const std::string& path) {
  std::erase_if(cell.settings, [&](const auto& setting) { return setting.first == path; });
  return LabelOf(cell);
}

std::vector<Judged> FindMeans(const ParsedExpectation& expectation,
                              std::span<const CellSummary* const> cells) {
  struct Sum {
    std::string label{};
    double total = 0;
    int count = 0;
    bool complete = true;
  };
  std::vector<Sum> sums{};
  const Metric* metric = FindMetric(expectation.metric);
  for (const CellSummary* cell : cells) {
    const std::string label = LabelWithout(*cell, expectation.mean_over);
    auto sum = std::find_if(sums.begin(), sums.end(),
                            [&](const Sum& other) { return other.label == label; });
    if (sum == sums.end()) {
      sum = sums.insert(sums.end(), Sum{.label = label});
    }
    const std::optional<double> value = metric->read(*cell);
    sum->complete = sum->complete && value.has_value();
    sum->total += value.value_or(0);
    ++sum->count;
  }
  std::vector<Judged> judged{};
  for (const Sum& sum : sums) {
    judged.push_back(
        FindMetricOf(expectation, absl::StrFormat("%s, mean of %d", sum.label, sum.count),
                     sum.complete ? std::optional(sum.total / sum.count) : std::nullopt));
  }
  return judged;
}

// The cell of the same part that differs from `cell` in the exchange alone; null when there is
// none.
const CellSummary* RivalOf(const CellSummary& cell, const std::string& exchange,
                           std::span<const CellSummary* const> run) {
  const auto without_exchange = [](CellSummary summary) {
    summary.exchange.clear();
    std::erase_if(summary.settings, [](const auto& setting) {
      return setting.first == "exchange" || setting.first.starts_with("exchange.");
    });
    return LabelOf(summary);
  };
  const auto rival = std::find_if(run.begin(), run.end(), [&](const CellSummary* other) {
    return other->exchange == exchange && without_exchange(*other) == without_exchange(cell);
  });
  return rival == run.end() ? nullptr : *rival;
}

Judged FindFactor(const ParsedExpectation& expectation, const CellSummary& cell,
                  std::span<const CellSummary* const> run) {
  const auto read = FindMetric(expectation.metric)->read;
  const CellSummary* rival = RivalOf(cell, expectation.times_exchange, run);
  const std::optional<double> value = read(cell);
  const double unit = rival == nullptr ? 0.0 : read(*rival).value_or(0.0);
  Judged outcome{.label = LabelOf(cell)};
  if (!value || unit == 0.0) {
    outcome.text = absl::StrFormat("no %s to divide by that of %s", expectation.metric,
                                   expectation.times_exchange);
    return outcome;
  }
  outcome.value = *value / unit;
  outcome.held = Holds(expectation.comparison, *outcome.value, expectation.bound);
  outcome.text = absl::StrFormat("%s %.4g, %.3g times that of %s", expectation.metric, *value,
                                 *outcome.value, expectation.times_exchange);
  return outcome;
}

// About the cells `picked` of those that were `run`.
std::vector<Judged> FindAll(const ParsedExpectation& expectation,
                            std::span<const CellSummary* const> picked,
                            std::span<const CellSummary* const> run) {
  if (!expectation.mean_over.empty()) {
    return FindMeans(expectation, picked);
  }
  std::vector<Judged> judged{};
  for (const CellSummary* cell : picked) {
    if (expectation.claim != Claim::kMetric) {
      judged.push_back(FindHashOf(expectation, *cell));
    } else if (!expectation.times_exchange.empty()) {
      judged.push_back(FindFactor(expectation, *cell, run));
    } else {
      judged.push_back(
          FindMetricOf(expectation, LabelOf(*cell), FindMetric(expectation.metric)->read(*cell)));
    }
  }
  return judged;
}

// Losses, accuracy and parameters are what training leaves; rows of a simulation have none.
bool IsAboutTraining(const ParsedExpectation& expectation) {
  constexpr std::array kTrained = {"accuracy", "final_loss", "test_loss", "excess_loss",
                                   "initial_loss"};
  return expectation.claim != Claim::kMetric ||
         std::find(kTrained.begin(), kTrained.end(), expectation.metric) != kTrained.end();
}

// The ones that break the claim first; at most a handful, the rest counted.
std::string Describe(std::vector<Judged> judged) {
  constexpr std::size_t kShown = 6;
  std::stable_partition(judged.begin(), judged.end(), [](const Judged& one) { return !one.held; });
  std::string text{};
  for (std::size_t i = 0; i < judged.size() && i < kShown; ++i) {
    text +=
        (text.empty() ? "" : ", ") + absl::StrFormat("%s (%s)", judged[i].text, judged[i].label);
  }
  if (judged.size() > kShown) {
    text += absl::StrFormat(" and %d more", judged.size() - kShown);
  }
  return text;
}

ExpectationOutcome Evaluate(const Part& part, const Expectation& stated,
                            std::span<const CellSummary* const> run, std::size_t planned) {
  ExpectationOutcome outcome{.part = part.name, .text = stated.text};
  const absl::StatusOr<ParsedExpectation> expectation = ParseExpectation(stated.text);
  if (!expectation.ok()) {
    outcome.found = MessageOf(expectation.status());
    return outcome;
  }
  std::vector<const CellSummary*> picked{};
  for (const CellSummary* cell : run) {
    if (Picks(*expectation, *cell)) {
      picked.push_back(cell);
    }
  }
  if (run.size() < planned) {
    outcome.found = absl::StrFormat("%d of %d cells were run", run.size(), planned);
    return outcome;
  }
  if (picked.empty()) {
    outcome.found = "no cell is picked by its where";
    return outcome;
  }
  if (IsAboutTraining(*expectation) && picked.front()->kind == FigureKind::kModelled) {
    outcome.judged = false;
    outcome.found = "not judged: a simulation trains nothing";
    return outcome;
  }
  std::vector<Judged> judged = FindAll(*expectation, picked, run);
  outcome.held =
      std::all_of(judged.begin(), judged.end(), [](const Judged& one) { return one.held; });
  outcome.found = Describe(std::move(judged));
  return outcome;
}

}  // namespace

bool SameSetting(const std::string& a, const std::string& b) {
  const auto left = ParseNumber(a);
  const auto right = ParseNumber(b);
  return left && right ? *left == *right : a == b;
}

std::vector<ExpectationOutcome> EvaluateExpectations(const Lab& lab,
                                                     std::span<const CellSummary> cells) {
  std::vector<ExpectationOutcome> outcomes{};
  for (const Part& part : lab.parts) {
    const auto planned = std::count_if(part.cells.begin(), part.cells.end(),
                                       [](const Cell& cell) { return !cell.baseline; });
    std::vector<const CellSummary*> run{};
    for (const CellSummary& cell : cells) {
      if (cell.part == part.name && !cell.baseline) {
        run.push_back(&cell);
      }
    }
    for (const Expectation& expectation : part.expect) {
      outcomes.push_back(Evaluate(part, expectation, run, static_cast<std::size_t>(planned)));
    }
  }
  return outcomes;
}

}  // namespace ranklab::experiment
