// The axes of a part's sweep and the combinations they make.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <absl/status/statusor.h>

#include "experiment/config_node.h"

namespace ranklab::experiment {

// What a --set asks for: "train.steps=8".
struct Override {
  std::string path{};
  ConfigNode value{};

  ConfigNode Tree() const { return Nest(path, value); }
};

// Of source.overrides. Errors: InvalidArgument, names the override.
absl::StatusOr<std::vector<Override>> ReadOverrides(const ConfigSource& source);

// One swept path with its values.
struct SweepAxis {
  std::string path{};
  std::vector<ConfigNode> values{};
};

// The axes of a `sweep` map (null: none), in the order of the file. `seed` is the part's seed: a
// list of seeds is the last axis. An override of a path that is swept ends that axis; one of a key
// inside a swept map acts on each of its values, and values that become equal are one.
// Errors: InvalidArgument: a path outside the sections, no list, an empty list, an axis that would
// undo an earlier one.
absl::StatusOr<std::vector<SweepAxis>> ReadSweep(const ConfigSource& source,
                                                 const ConfigNode* sweep, const ConfigNode* seed,
                                                 std::span<const Override> overrides);

// Of the cross product; `limit` + 1 when there are more than `limit`.
std::int64_t CountCells(std::span<const SweepAxis> axes, std::int64_t limit);

// Combination `number` of the cross product, the first axis slowest: its values by path, and how
// they were written.
struct SweepChoice {
  ConfigNode tree{};
  std::vector<std::pair<std::string, std::string>> settings{};
};
void ApplyChoice(std::span<const SweepAxis> axes, std::int64_t number, SweepChoice& choice);

}  // namespace ranklab::experiment
