// The entries of a lab's scenario, which are also what a live injection sends.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "experiment/config_node.h"
#include "experiment/scenario.h"

namespace ranklab::experiment {

// A list of entries, or null for none; ordered by at_step. Errors: InvalidArgument, with its place.
absl::Status ReadScenario(const ConfigSource& source, const ConfigNode* list, Scenario& scenario);

// One entry; `path` is its name for messages, empty when the source has no other. In a lab
// `at_step` is required; live it may be left out: at once.
enum class EntryFrom { kLab, kLive };
absl::StatusOr<Injection> ReadEntry(const ConfigSource& source, const ConfigNode& node,
                                    const std::string& path, EntryFrom from);

}  // namespace ranklab::experiment
