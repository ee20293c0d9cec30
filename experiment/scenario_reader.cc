#include "experiment/scenario_reader.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>

#include "core/status.h"
#include "experiment/fields.h"
#include "experiment/quantity.h"

namespace ranklab::experiment {
namespace {

constexpr std::int64_t kMostSteps = 1 << 30;
constexpr std::size_t kMostEntries = 1000;
constexpr std::array<std::string_view, 6> kEffects = {"slow", "pause", "link",
                                                      "nan",  "kill",  "reset"};
constexpr std::array<std::string_view, 4> kNotYet = {"partition", "skip_collective", "wrong_dtype",
                                                     "out_of_memory"};
// Linux's smallest retransmission time-out (TCP_RTO_MIN): what a lost packet costs at least.
constexpr Nanos kRetransmitAfter = std::chrono::milliseconds(200);

Rank ReadRank(Fields& fields) {
  Rank rank = 0;
  fields.Require("rank", "the rank that it hits, from 0");
  fields.Integer("rank", {.least = 0}, rank);
  return rank;
}

absl::StatusOr<SlowPhase> ReadSlow(const ConfigSource& source, const ConfigNode& node,
                                   const std::string& path, Rank rank) {
  constexpr std::array<std::string_view, 4> kPhases = {"input", "forward", "backward", "optimizer"};
  constexpr std::array kValues = {Phase::kInput, Phase::kForward, Phase::kBackward,
                                  Phase::kOptimizer};
  SlowPhase slow{.rank = rank};
  Fields fields(source, &node, path);
  std::string phase = "backward";
  fields.OneOf("phase", kPhases, phase);
  slow.phase = kValues.at(
      static_cast<std::size_t>(std::find(kPhases.begin(), kPhases.end(), phase) - kPhases.begin()));
  fields.Number("factor", {.least = 1, .most = 1e6}, slow.factor);
  fields.Duration("extra", slow.extra);
  fields.Integer("rotate_every", {.least = 1, .most = kMostSteps}, slow.rotate_every);
  if (fields.Has("factor") == fields.Has("extra")) {
    fields.Fail(
        Complain(source, node, path + " needs factor (2.0) or extra (50ms), one of the two"));
  }
  RETURN_IF_ERROR(fields.Finish());
  return slow;
}

// "2" is a worker, "ps0" a server.
std::optional<Endpoint> ParseEnd(std::string_view text) {
  const bool server = text.starts_with("ps");
  const auto rank = ParseInteger(server ? text.substr(2) : text);
  if (!rank || *rank < 0 || *rank > std::numeric_limits<Rank>::max()) {
    return std::nullopt;
  }
  return Endpoint{.role = server ? Role::kServer : Role::kWorker, .rank = static_cast<Rank>(*rank)};
}

// "1-2" in both directions, "1->2" from 1 to 2; "1-ps0", "ps0->1".
std::optional<ShapeLink> ParseLink(std::string_view text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) {
    return std::nullopt;
  }
  std::string_view to = text.substr(dash + 1);
  const bool one_way = to.starts_with('>');
  if (one_way) {
    to.remove_prefix(1);
  }
  const std::optional<Endpoint> from_end = ParseEnd(text.substr(0, dash));
  const std::optional<Endpoint> to_end = ParseEnd(to);
  if (!from_end || !to_end || *from_end == *to_end ||
      (from_end->role == Role::kServer && to_end->role == Role::kServer)) {
    return std::nullopt;
  }
  return ShapeLink{.from = *from_end, .to = *to_end, .both_directions = !one_way};
}

ShapeLink ReadLink(Fields& fields) {
  std::string text;
  fields.Text("link", text);
  const std::optional<ShapeLink> parsed = ParseLink(text);
  if (!parsed) {
    fields.Fail(
        "link",
        "two ranks, such as 1-2 (both directions) or 1->2, or a rank and a server, such as 1-ps0");
  }
  ShapeLink link = parsed.value_or(ShapeLink{});
  link.spec.bandwidth.bytes_per_second = std::numeric_limits<double>::infinity();
  link.spec.retransmit_after = kRetransmitAfter;
  fields.Duration("latency", link.spec.alpha);
  fields.Duration("jitter", link.spec.jitter);
  fields.Rate("bandwidth", link.spec.bandwidth);
  fields.Number("loss", {.least = 0, .most = 1}, link.spec.loss_probability);
  fields.Duration("retransmit_after", link.spec.retransmit_after);
  if (!fields.Has("latency") && !fields.Has("jitter") && !fields.Has("bandwidth") &&
      !fields.Has("loss")) {
    fields.Require("latency", "a link needs latency, jitter, bandwidth or loss");
  }
  return link;
}

void ReadTrue(Fields& fields, std::string_view key) {
  bool value = false;
  fields.Flag(key, value);
  if (!value) {
    fields.Fail(key, "true");
  }
}

Pause ReadPause(Fields& fields) {
  Pause pause{.rank = ReadRank(fields)};
  fields.Duration("pause", pause.duration);
  if (pause.duration <= Nanos::zero()) {
    fields.Fail("pause", "a duration above 0, such as 500ms");
  }
  fields.Integer("every_steps", {.least = 1, .most = kMostSteps}, pause.every_steps);
  return pause;
}

std::string InPath(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

absl::Status RefuseNotYet(const ConfigSource& source, const ConfigNode& node,
                          const std::string& path) {
  for (const std::string_view key : kNotYet) {
    if (const ConfigNode* found = node.Find(key)) {
      return Complain(source, *found,
                      absl::StrFormat("%s is not supported yet; one of %s", InPath(path, key),
                                      Listed(kEffects)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Injection> ReadEntry(const ConfigSource& source, const ConfigNode& node,
                                    const std::string& path, EntryFrom from) {
  RETURN_IF_ERROR(RefuseNotYet(source, node, path));
  const std::string what = path.empty() ? "it" : path;
  Fields fields(source, &node, path);
  Injection injection{.text = Render(node)};
  if (from == EntryFrom::kLab) {
    fields.Require("at_step", "the step that it begins in, from 1");
  }
  fields.Integer("at_step", {.least = from == EntryFrom::kLab ? 1 : 0, .most = kMostSteps},
                 injection.at_step);
  fields.Integer("until_step", {.least = 1, .most = kMostSteps}, injection.until_step);
  if (injection.until_step > 0 && injection.until_step < injection.at_step) {
    fields.Fail("until_step", absl::StrFormat("a step from at_step (%d) on", injection.at_step));
  }
  const auto effects = std::count_if(kEffects.begin(), kEffects.end(),
                                     [&](std::string_view key) { return fields.Has(key); });
  if (effects > 1) {
    return Complain(source, node,
                    absl::StrFormat("%s has several effects; one entry each: one of %s", what,
                                    Listed(kEffects)));
  }
  if (const ConfigNode* slow_node = fields.Take("slow")) {
    const Rank rank = ReadRank(fields);
    absl::StatusOr<SlowPhase> slow = ReadSlow(source, *slow_node, InPath(path, "slow"), rank);
    fields.Fail(slow.status());
    injection.effect = slow.ok() ? *slow : SlowPhase{};
  } else if (fields.Has("pause")) {
    injection.effect = ReadPause(fields);
  } else if (fields.Has("link")) {
    injection.effect = ReadLink(fields);
  } else if (fields.Has("nan")) {
    ReadTrue(fields, "nan");
    injection.effect = PlantNaN{.rank = ReadRank(fields)};
  } else if (fields.Has("kill")) {
    ReadTrue(fields, "kill");
    injection.effect = Kill{.rank = ReadRank(fields)};
  } else if (fields.Has("reset")) {
    ReadTrue(fields, "reset");
    injection.effect = Heal{};
  } else {
    for (const std::string_view key : kEffects) {
      fields.Take(key);  // known, so that a misspelt one is told of them
    }
    fields.Take("rank");
    fields.Fail(Complain(source, node,
                         absl::StrFormat("%s has no effect; one of %s", what, Listed(kEffects))));
  }
  RETURN_IF_ERROR(fields.Finish());
  return injection;
}

absl::Status ReadScenario(const ConfigSource& source, const ConfigNode* list, Scenario& scenario) {
  if (list == nullptr || list->kind == ConfigNode::Kind::kNull) {
    return absl::OkStatus();
  }
  if (!list->is_list()) {
    return WrongValue(source, *list, "scenario",
                      "a list, such as [{at_step: 10, rank: 2, slow: {factor: 2.0}}]");
  }
  if (list->items.size() > kMostEntries) {
    return Complain(
        source, *list,
        absl::StrFormat("scenario has %d entries; at most %d", list->items.size(), kMostEntries));
  }
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    ASSIGN_OR_RETURN(
        Injection injection,
        ReadEntry(source, list->items[i], "scenario[" + std::to_string(i) + "]", EntryFrom::kLab));
    scenario.injections.push_back(std::move(injection));
  }
  std::stable_sort(scenario.injections.begin(), scenario.injections.end(),
                   [](const Injection& a, const Injection& b) { return a.at_step < b.at_step; });
  return absl::OkStatus();
}

}  // namespace ranklab::experiment
