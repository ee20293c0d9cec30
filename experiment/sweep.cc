#include "experiment/sweep.h"

#include <algorithm>
#include <array>

#include "core/check.h"
#include "core/status.h"
#include "experiment/fields.h"
#include "experiment/yaml_parser.h"

namespace ranklab::experiment {
namespace {

constexpr std::array<std::string_view, 8> kSweepable = {"model",   "data",     "train",  "cluster",
                                                        "compute", "exchange", "fabric", "seed"};
constexpr std::array<std::string_view, 14> kOverridable = {
    "model", "data", "train",   "cluster",  "compute", "exchange", "fabric",
    "seed",  "name", "repeats", "question", "budget",  "scenario", "expect"};

bool Contains(std::span<const std::string_view> words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool Inside(std::string_view path, std::string_view outer) {
  return path.size() > outer.size() && path.starts_with(outer) && path[outer.size()] == '.';
}

void MarkAsOverride(ConfigNode& node, int index) {
  node.override_index = index;
  for (ConfigNode& item : node.items) {
    MarkAsOverride(item, index);
  }
  for (auto& [key, value] : node.fields) {
    MarkAsOverride(value, index);
  }
}

// After `override_path` acted, nothing of what the axis chose is left.
bool Ends(std::string_view override_path, std::string_view axis_path) {
  const auto is_batch = [](std::string_view path) {
    return path == "train.global_batch" || path == "train.batch_per_worker";
  };
  return axis_path == override_path || Inside(axis_path, override_path) ||
         (is_batch(override_path) && is_batch(axis_path));
}

void ActOnValues(const Override& change, SweepAxis& axis) {
  std::vector<ConfigNode> values;
  std::vector<std::string> seen;
  for (ConfigNode& value : axis.values) {
    ConfigNode tree = Nest(axis.path, std::move(value));
    MergeInto(tree, change.Tree());
    ConfigNode changed = Locate(tree, axis.path);
    const std::string text = Render(changed);
    if (std::find(seen.begin(), seen.end(), text) == seen.end()) {
      seen.push_back(text);
      values.push_back(std::move(changed));
    }
  }
  axis.values = std::move(values);
}

absl::StatusOr<SweepAxis> ReadAxis(const ConfigSource& source, const std::string& path,
                                   const ConfigNode& values) {
  const std::string section = SplitPath(path).front();
  if (!Contains(kSweepable, section)) {
    return UnknownKey(source, values, "sweep." + section, kSweepable);
  }
  if (!values.is_list() || values.items.empty()) {
    return WrongValue(source, values, "sweep." + path,
                      values.is_list() ? "at least one value" : "a list, such as [1, 2, 4]");
  }
  return SweepAxis{.path = path, .values = values.items};
}

absl::Status RefuseUndoing(const ConfigSource& source, const ConfigNode& sweep,
                           std::span<const SweepAxis> axes) {
  for (std::size_t later = 0; later < axes.size(); ++later) {
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      if (Inside(axes[earlier].path, axes[later].path)) {
        return Complain(source, *sweep.Find(axes[later].path),
                        absl::StrFormat("sweep.%s would undo sweep.%s before it; put it first",
                                        axes[later].path, axes[earlier].path));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Override>> ReadOverrides(const ConfigSource& source) {
  std::vector<Override> overrides;
  for (std::size_t i = 0; i < source.overrides.size(); ++i) {
    const std::string& text = source.overrides[i];
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      return InvalidArgument("--set %s: not path=value, such as train.steps=8", text);
    }
    Override change{.path = text.substr(0, equals)};
    ASSIGN_OR_RETURN(change.value, ParseYaml(text.substr(equals + 1), "--set " + text, false));
    MarkAsOverride(change.value, static_cast<int>(i));
    const std::vector<std::string> keys = SplitPath(change.path);
    if (!Contains(kOverridable, keys.front())) {
      return UnknownKey(source, change.value, keys.front(), kOverridable);
    }
    if (keys.size() > static_cast<std::size_t>(kLabDepthLimit)) {
      return InvalidArgument("--set %s: deeper than any key of a lab", text);
    }
    overrides.push_back(std::move(change));
  }
  return overrides;
}

absl::StatusOr<std::vector<SweepAxis>> ReadSweep(const ConfigSource& source,
                                                 const ConfigNode* sweep, const ConfigNode* seed,
                                                 std::span<const Override> overrides) {
  std::vector<SweepAxis> axes;
  if (sweep != nullptr) {
    if (!sweep->is_map()) {
      return WrongValue(source, *sweep, "sweep", "a map, such as {cluster.workers: [1, 2, 4]}");
    }
    for (const auto& [path, values] : sweep->fields) {
      ASSIGN_OR_RETURN(SweepAxis axis, ReadAxis(source, path, values));
      axes.push_back(std::move(axis));
    }
    RETURN_IF_ERROR(RefuseUndoing(source, *sweep, axes));
  }
  for (const Override& change : overrides) {
    std::erase_if(axes, [&](const SweepAxis& axis) { return Ends(change.path, axis.path); });
    for (SweepAxis& axis : axes) {
      if (Inside(change.path, axis.path)) {
        ActOnValues(change, axis);
      }
    }
  }
  const bool swept = std::any_of(axes.begin(), axes.end(),
                                 [](const SweepAxis& axis) { return axis.path == "seed"; });
  if (seed != nullptr && seed->is_list() && !swept) {
    if (seed->items.empty()) {
      return WrongValue(source, *seed, "seed", "a number, or a list of at least one");
    }
    axes.push_back({.path = "seed", .values = seed->items});
  }
  return axes;
}

std::int64_t CountCells(std::span<const SweepAxis> axes, std::int64_t limit) {
  std::int64_t count = 1;
  for (const SweepAxis& axis : axes) {
    const auto values = static_cast<std::int64_t>(axis.values.size());
    if (count > limit / values) {
      return limit + 1;
    }
    count *= values;
  }
  return count;
}

void ApplyChoice(std::span<const SweepAxis> axes, std::int64_t number, SweepChoice& choice) {
  std::vector<std::size_t> picks(axes.size());
  for (std::size_t i = axes.size(); i-- > 0;) {
    const auto values = static_cast<std::int64_t>(axes[i].values.size());
    picks[i] = static_cast<std::size_t>(number % values);
    number /= values;
  }
  RANKLAB_CHECK(number == 0, "a combination past the last");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const ConfigNode& value = axes[i].values[picks[i]];
    MergeInto(choice.tree, Nest(axes[i].path, value));
    choice.settings.emplace_back(axes[i].path, value.is_scalar() ? value.text : Render(value));
  }
}

}  // namespace ranklab::experiment
