#pragma once

#include <string>

#include <absl/status/statusor.h>

#include "worker/dataset.h"

namespace ranklab::worker {

// The bytes of any file as tokens, cut into samples of spec.context with the byte after each as its
// target; the last sample is padded with token 0 and no target. The last tenth of the samples, at
// least one, is the test. Relative paths start in `lab_folder`.
// Errors: NotFound, no such file; InvalidArgument, a file too short for two samples, or larger than
// kMaxTextBytes.
inline constexpr std::int64_t kMaxTextBytes = std::int64_t{1} << 28;
absl::StatusOr<Dataset> LoadText(const experiment::DataSpec& spec, const std::string& lab_folder);

}  // namespace ranklab::worker
