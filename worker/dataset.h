// Data sets in memory: a training and a test split.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "experiment/lab_spec.h"

namespace ranklab::worker {

// Samples of values with one label each, or of tokens with one label a token: the one to predict
// after it, or compute::kNoTarget. Row-major.
struct Split {
  std::vector<float> inputs{};         // (samples, width), or
  std::vector<std::int32_t> tokens{};  // (samples, width)
  std::vector<std::int32_t> labels{};  // (samples, labels_per_sample)
  std::int64_t labels_per_sample = 1;

  std::int64_t samples() const {
    return static_cast<std::int64_t>(labels.size()) / labels_per_sample;
  }
  // Requires: samples.
  std::int64_t width() const {
    return static_cast<std::int64_t>(inputs.size() + tokens.size()) / samples();
  }
  std::int64_t CountTargets() const;  // labels that are not kNoTarget
  // Samples [first, last) of `other`, which is of the same kind, behind the ones that are here.
  void Append(const Split& other, std::int64_t first, std::int64_t last);
};

struct Dataset {
  int inputs = 0;  // values, or tokens, of a sample
  int classes = 0;
  Split train;
  Split test;
  // The least mean loss that any model can have, in nats a target, where the source is known.
  std::optional<double> loss_floor{};
};

// By spec.kind: digits, idx, synthetic, grammar or text, each described in its header. The result
// depends on the spec (and its split_seed) and the files alone, never on the training seed.
// `lab_folder` is where relative paths start. Errors: NotFound, a file; InvalidArgument, with file
// and place, what a file or the spec holds; Unimplemented, a compressed file.
absl::StatusOr<Dataset> LoadDataset(const experiment::DataSpec& spec,
                                    const std::string& lab_folder);

}  // namespace ranklab::worker
