// From a lab's tree to its cells: parts, overrides, sweeps, baselines.
#pragma once

#include <absl/status/status.h>

#include "experiment/config_node.h"
#include "experiment/lab_spec.h"

namespace ranklab::experiment {

inline constexpr std::int64_t kCellLimit = 10'000;  // of a lab, before baselines
inline constexpr int kRepeatLimit = 1'000;

// Fills lab.name, question, budget_seconds and parts from a lab's tree.
// A part inherits what it does not give (sweep, scenario, expect, repeats); `with` acts on the
// lab's sections, then the sweep, then the overrides.
// Errors: InvalidArgument, one line, with its place.
absl::Status ExpandLab(const ConfigSource& source, const ConfigNode& root, Lab& lab);

}  // namespace ranklab::experiment
