// Reads a lab file. The only place that knows YAML.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <absl/status/statusor.h>

#include "experiment/lab_spec.h"

namespace ranklab::experiment {

// `file` is its name for messages. `overrides` are "path=value" (the --set flags): act last, on
// every part. Expands parts and sweeps to cells and adds the baselines.
// Errors: InvalidArgument, one line: "labs/x.yaml:12: exchange.algorithm is "rign"; one of ring".
absl::StatusOr<Lab> ReadLab(std::string_view text, std::string_view file,
                            std::span<const std::string> overrides);

// Errors: also NotFound, the file, with what would be right.
absl::StatusOr<Lab> ReadLabFile(const std::string& path, std::span<const std::string> overrides);

// One entry of a scenario, as `ranklab inject` sends it: {rank: 2, slow: {phase: backward, ...}}.
absl::StatusOr<Injection> ReadInjection(std::string_view text);

}  // namespace ranklab::experiment
