// Data sets in memory: a training and a test split.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "experiment/lab_spec.h"

namespace ranklab::worker {

struct Split {
  std::vector<float> inputs;        // (samples, inputs), row-major
  std::vector<std::int32_t> labels; // (samples)
  std::int64_t samples() const { return static_cast<std::int64_t>(labels.size()); }
};

struct Dataset {
  int inputs = 0;
  int classes = 0;
  Split train;
  Split test;
};

// digits: UCI handwritten digits (embedded in the program), pixels / 16, a seeded shuffled split of
// 1,437 and 360; idx: MNIST's file format; synthetic: a seeded teacher network labels Gaussian
// inputs. `lab_folder` is where relative paths start.
// Errors: NotFound and InvalidArgument, with file and place.
absl::StatusOr<Dataset> LoadDataset(const experiment::DataSpec& spec, std::uint64_t seed,
                                    const std::string& lab_folder);

}  // namespace ranklab::worker
