#pragma once

#include <absl/status/statusor.h>

#include "worker/dataset.h"

namespace ranklab::worker {

// Any size of data without a file: inputs are standard normal, labels are the largest output of a
// random network with one hidden layer of kTeacherWidth ReLUs, so that a model can learn them.
// spec.samples training samples and a quarter as many for the test, at least one. All of it follows
// from spec.split_seed.
inline constexpr int kTeacherWidth = 32;

// Errors: InvalidArgument, sizes out of range.
absl::StatusOr<Dataset> MakeSynthetic(const experiment::DataSpec& spec);

}  // namespace ranklab::worker
