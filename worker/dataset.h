// Data sets in memory: a training and a test split.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "experiment/lab_spec.h"

namespace ranklab::worker {

struct Split {
  std::vector<float> inputs;         // (samples, inputs), row-major
  std::vector<std::int32_t> labels;  // (samples)

  std::int64_t samples() const { return static_cast<std::int64_t>(labels.size()); }
};

struct Dataset {
  int inputs = 0;
  int classes = 0;
  Split train;
  Split test;
};

// By spec.kind: digits, idx or synthetic, each described in its header. The result depends on the
// spec (and its split_seed) and the files alone, never on the training seed. `lab_folder` is where
// relative paths start.
// Errors: NotFound, a file; InvalidArgument, with file and place, what a file or the spec holds;
// Unimplemented, a compressed file.
absl::StatusOr<Dataset> LoadDataset(const experiment::DataSpec& spec,
                                    const std::string& lab_folder);

}  // namespace ranklab::worker
