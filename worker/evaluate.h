// What is said about a model outside the timed steps.
#pragma once

#include <cstdint>
#include <string>

#include <absl/status/statusor.h>

#include "worker/dataset.h"
#include "worker/model.h"

namespace ranklab::worker {

struct Evaluation {
  double loss = 0;      // mean over the targets
  double accuracy = 0;  // share of targets that have the largest logit
};

// Forward passes over `split`, as many samples at a time as the model takes. Leaves parameters and
// gradients as they are. Requires: at least one sample.
// Errors: InvalidArgument, a split without any target; the model's.
absl::StatusOr<Evaluation> Evaluate(Model& model, const Split& split);

// XXH3 128 of the parameters' bytes, 32 hexadecimal digits: equal on two ranks if and, for
// practical purposes, only if every bit is. Source: Y. Collet, xxHash.
absl::StatusOr<std::string> ParamHash(Model& model);

}  // namespace ranklab::worker
