#include "experiment/expansion.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/nearest.h"
#include "core/status.h"
#include "experiment/baselines.h"
#include "experiment/expectation.h"
#include "experiment/fields.h"
#include "experiment/metrics.h"
#include "experiment/quantity.h"
#include "experiment/sections.h"
#include "experiment/sweep.h"

namespace ranklab::experiment {
namespace {

constexpr std::array<std::string_view, 8> kSections = {"model",   "data",     "train",  "cluster",
                                                       "compute", "exchange", "fabric", "seed"};
// What a part may give itself, or inherit.
constexpr std::array<std::string_view, 4> kPartKeys = {"sweep", "scenario", "expect", "repeats"};

void ReadName(Fields& fields, std::string& name) {
  constexpr std::string_view kWords = "up to 64 letters, digits, - and _ (it names a folder)";
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
  fields.Require("name", kWords);
  fields.Text("name", name);
  if (fields.Has("name") && (name.empty() || name.size() > 64 || name.front() == '-' ||
                             name.find_first_not_of(kLetters) != std::string::npos)) {
    fields.Fail("name", kWords);
  }
}

absl::Status ReadHead(const ConfigSource& source, const ConfigNode& root, Lab& lab) {
  Fields fields(source, &root, "");
  ReadName(fields, lab.name);
  fields.Text("question", lab.question);
  Nanos budget{};
  fields.Duration("budget", budget);
  lab.budget_seconds = std::chrono::duration<double>(budget).count();
  for (const std::string_view key : kSections) {
    fields.Take(key);
  }
  for (const std::string_view key : kPartKeys) {
    fields.Take(key);
  }
  fields.Take("parts");
  return fields.Finish();
}

// The paths that a cell of the part can be asked for: the usual ones and what its sweep names.
std::vector<std::string_view> AskablePaths(const ConfigNode& tree) {
  const auto common = CommonSettings();
  std::vector<std::string_view> paths(common.begin(), common.end());
  if (const ConfigNode* sweep = tree.Find("sweep")) {
    for (const auto& [path, values] : sweep->fields) {
      paths.push_back(path);
    }
  }
  return paths;
}

// What the table will say that was chosen for the cell.
CellSummary SettingsOf(const Cell& cell) {
  const bool servers = std::holds_alternative<ParameterServerSpec>(cell.spec.exchange.kind);
  return {.settings = cell.settings,
          .exchange = cell.spec.ExchangeName(),
          .transport = cell.spec.Transport(),
          .fabric = cell.spec.fabric.preset,
          .workers = cell.spec.cluster.workers,
          .servers = servers ? cell.spec.cluster.servers : 0,
          .threads = cell.spec.compute.threads,
          .seed = cell.spec.seed};
}

// A condition that no cell meets makes a claim about nothing.
absl::Status CheckCondition(const ParsedExpectation::Condition& condition,
                            std::span<const CellSummary> cells) {
  std::set<std::string> values;
  for (const CellSummary& cell : cells) {
    const auto value = SettingOf(cell, condition.path);
    if (!condition.equal || (value && SameSetting(*value, condition.value)) ||
        (cell.workers == 0 && condition.path == "cluster.workers")) {  // all: known when it runs
      return absl::OkStatus();
    }
    if (value) {
      values.insert(*value);
    }
  }
  const std::vector<std::string_view> known(values.begin(), values.end());
  const std::string advice = ParseNumber(condition.value) ? "" : DidYouMean(condition.value, known);
  return InvalidArgument("no cell has %s = %s%s", condition.path, condition.value,
                         !advice.empty() ? advice
                         : known.empty() ? ""
                                         : "; one of " + Listed(known));
}

absl::Status CheckExpectation(const std::string& text, std::span<const std::string_view> paths,
                              std::span<const CellSummary> cells) {
  ASSIGN_OR_RETURN(const ParsedExpectation expectation, ParseExpectation(text));
  const auto check = [paths](std::string_view after, std::string_view path) {
    if (std::find(paths.begin(), paths.end(), path) != paths.end()) {
      return absl::OkStatus();
    }
    const std::string advice = DidYouMean(path, paths);
    return InvalidArgument("unknown path \"%s\" after %s%s", path, after,
                           advice.empty() ? "; one of " + Listed(paths) : advice);
  };
  if (!expectation.mean_over.empty()) {
    RETURN_IF_ERROR(check("over", expectation.mean_over));
  }
  for (const ParsedExpectation::Condition& condition : expectation.where) {
    RETURN_IF_ERROR(check("where", condition.path));
    RETURN_IF_ERROR(CheckCondition(condition, cells));
  }
  std::set<std::string> exchanges;
  for (const CellSummary& cell : cells) {
    exchanges.insert(cell.exchange);
  }
  const std::string& times = expectation.times_exchange;
  if (!times.empty() && !exchanges.contains(times)) {
    return InvalidArgument(
        "no cell has the exchange \"%s\" after times; one of %s", times,
        Listed(std::vector<std::string_view>(exchanges.begin(), exchanges.end())));
  }
  return absl::OkStatus();
}

// Requires: the part's cells are expanded.
absl::Status ReadExpectations(const ConfigSource& source, const ConfigNode& tree, Part& part) {
  const ConfigNode* list = tree.Find("expect");
  if (list == nullptr || list->kind == ConfigNode::Kind::kNull) {
    return absl::OkStatus();
  }
  if (!list->is_list()) {
    return WrongValue(source, *list, "expect", "a list, such as [accuracy > 0.95]");
  }
  const std::vector<std::string_view> paths = AskablePaths(tree);
  std::vector<CellSummary> cells;
  for (const Cell& cell : part.cells) {
    if (!cell.baseline) {
      cells.push_back(SettingsOf(cell));
    }
  }
  for (const ConfigNode& item : list->items) {
    if (!item.is_scalar()) {
      return WrongValue(source, item, "expect", "a text, such as accuracy > 0.95");
    }
    if (const absl::Status status = CheckExpectation(item.text, paths, cells); !status.ok()) {
      return Complain(source, item,
                      absl::StrFormat("expect \"%s\": %s", item.text, MessageOf(status)));
    }
    part.expect.push_back({.text = item.text, .line = item.line});
  }
  return absl::OkStatus();
}

absl::Status ReadRepeats(const ConfigSource& source, const ConfigNode& tree, int& repeats) {
  ConfigNode only{.kind = ConfigNode::Kind::kMap};
  if (const ConfigNode* node = tree.Find("repeats")) {
    only.Set("repeats", *node);
  }
  Fields fields(source, &only, "");
  fields.Integer("repeats", {.least = 1, .most = kRepeatLimit}, repeats);
  return fields.Finish();
}

// The part's tree before its sweep: sections, and what a part gives.
absl::StatusOr<ConfigNode> PartTree(const ConfigSource& source, const ConfigNode& root,
                                    const ConfigNode* part) {
  ConfigNode tree = root;
  tree.Remove("parts");
  if (part == nullptr) {
    return tree;
  }
  if (const ConfigNode* with = part->Find("with")) {
    if (!with->is_map()) {
      return WrongValue(source, *with, "with", "a map, such as {train: {steps: 8}}");
    }
    for (const auto& [key, value] : with->fields) {
      if (std::find(kSections.begin(), kSections.end(), key) == kSections.end()) {
        return UnknownKey(source, value, "with." + key, kSections);
      }
    }
    MergeInto(tree, *with);
  }
  for (const std::string_view key : kPartKeys) {
    if (const ConfigNode* given = part->Find(key)) {
      tree.Set(key, *given);
    }
  }
  return tree;
}

absl::Status ExpandCells(const ConfigSource& source, const ConfigNode& tree,
                         std::span<const Override> overrides, int part_index, Part& part) {
  const ConfigNode* sweep = tree.Find("sweep");
  ASSIGN_OR_RETURN(const std::vector<SweepAxis> axes,
                   ReadSweep(source, sweep, tree.Find("seed"), overrides));
  const std::int64_t count = CountCells(axes, kCellLimit);
  if (count > kCellLimit) {
    return Complain(source, sweep == nullptr ? tree : *sweep,
                    absl::StrFormat("the sweep makes more than %d cells", kCellLimit));
  }
  for (std::int64_t number = 0; number < count; ++number) {
    SweepChoice choice{.tree = tree};
    ApplyChoice(axes, number, choice);
    for (const Override& change : overrides) {
      if (change.path != "seed") {  // it has ended the sweep of seeds, or is the list that is swept
        MergeInto(choice.tree, change.Tree());
      }
    }
    ASSIGN_OR_RETURN(LabSpec spec, ReadSpec(source, choice.tree));
    spec.scenario.name = part.name;
    part.cells.push_back({.part = part_index,
                          .index = static_cast<int>(number),
                          .spec = std::move(spec),
                          .settings = std::move(choice.settings)});
  }
  AddBaselines(part_index, part);
  return absl::OkStatus();
}

absl::Status ExpandPart(const ConfigSource& source, const ConfigNode& root,
                        const ConfigNode* part_node, std::span<const Override> overrides,
                        Lab& lab) {
  Part part{.name = lab.name};
  if (part_node != nullptr) {
    Fields fields(source, part_node, absl::StrFormat("parts[%d]", lab.parts.size()));
    ReadName(fields, part.name);
    fields.Take("with");
    fields.Flag("simulate", part.simulated);
    for (const std::string_view key : kPartKeys) {
      fields.Take(key);
    }
    RETURN_IF_ERROR(fields.Finish());
  }
  for (const Part& other : lab.parts) {
    if (other.name == part.name) {
      return WrongValue(source, *part_node->Find("name"),
                        absl::StrFormat("parts[%d].name", lab.parts.size()),
                        "a name that no other part has");
    }
  }
  ASSIGN_OR_RETURN(ConfigNode tree, PartTree(source, root, part_node));
  for (const Override& change : overrides) {
    MergeInto(tree, change.Tree());
  }
  RETURN_IF_ERROR(ReadRepeats(source, tree, part.repeats));
  const int part_index = static_cast<int>(lab.parts.size());
  if (const absl::Status status = ExpandCells(source, tree, overrides, part_index, part);
      !status.ok()) {
    return part_node == nullptr ? status
                                : InvalidArgument("%s (part %s)", MessageOf(status), part.name);
  }
  if (part.simulated && std::any_of(part.cells.begin(), part.cells.end(), [](const Cell& cell) {
        return cell.spec.cluster.workers == 0;
      })) {
    return Complain(source, *part_node,
                    absl::StrFormat("part %s is simulated and cluster.workers is all; a number, "
                                    "such as 1024",
                                    part.name));
  }
  RETURN_IF_ERROR(ReadExpectations(source, tree, part));
  lab.parts.push_back(std::move(part));
  return absl::OkStatus();
}

absl::Status CheckCellCount(const ConfigSource& source, const ConfigNode& parts, const Lab& lab) {
  std::int64_t cells = 0;
  for (const Part& part : lab.parts) {
    cells += static_cast<std::int64_t>(part.cells.size());
  }
  if (cells > kCellLimit) {
    return Complain(source, parts,
                    absl::StrFormat("the parts make %d cells; at most %d", cells, kCellLimit));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ExpandLab(const ConfigSource& source, const ConfigNode& root, Lab& lab) {
  if (!root.is_map()) {
    return Complain(source, root, "not a lab: a map of name, model, train, ...");
  }
  ASSIGN_OR_RETURN(const std::vector<Override> overrides, ReadOverrides(source));
  ConfigNode tree = root;
  for (const Override& change : overrides) {
    MergeInto(tree, change.Tree());
  }
  RETURN_IF_ERROR(ReadHead(source, tree, lab));
  const ConfigNode* parts = tree.Find("parts");
  if (parts == nullptr) {
    return ExpandPart(source, root, nullptr, overrides, lab);
  }
  if (!parts->is_list() || parts->items.empty()) {
    return WrongValue(source, *parts, "parts", "a list of at least one part");
  }
  for (const ConfigNode& part : parts->items) {
    RETURN_IF_ERROR(ExpandPart(source, root, &part, overrides, lab));
    RETURN_IF_ERROR(CheckCellCount(source, *parts, lab));
  }
  return absl::OkStatus();
}

}  // namespace ranklab::experiment
