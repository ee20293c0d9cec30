// YAML text to a ConfigNode. The only place that includes yaml-cpp, and where its exceptions stop.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <absl/status/statusor.h>

#include "experiment/config_node.h"

namespace ranklab::experiment {

inline constexpr std::size_t kLabTextLimit = 1 << 20;  // bytes
inline constexpr int kLabDepthLimit = 16;              // lists and maps in each other

// One document. `where` is its name for messages: "labs/x.yaml:3: ..."; when `line_numbers` is
// false the text is a single value from elsewhere and messages give `where` alone.
// Errors: InvalidArgument: not YAML, larger or deeper than the limits, a key twice in a map, an
// anchor or alias (a few of them expand to gigabytes), several documents, not UTF-8.
absl::StatusOr<ConfigNode> ParseYaml(std::string_view text, std::string_view where,
                                     bool line_numbers = true);

}  // namespace ranklab::experiment
