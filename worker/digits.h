#pragma once

#include <cstdint>
#include <string_view>

#include <absl/status/statusor.h>

#include "worker/dataset.h"

namespace ranklab::worker {

// 1,797 handwritten digits of 8 x 8 pixels from 0 to 16, embedded in the program as
// data/digits.csv: 64 pixels and a label a line. Source: see data/README.md.
std::string_view DigitsText();

// Pixels / 16. Samples in an order shuffled by `split_seed`: the first 1,437 are the training
// split, the other 360 the test split.
absl::StatusOr<Dataset> LoadDigits(std::uint64_t split_seed);

}  // namespace ranklab::worker
