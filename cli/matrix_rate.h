// How fast a device multiplies matrices: what a run's own rate is held against.
#pragma once

#include <absl/status/statusor.h>

#include "compute/tensor.h"

namespace ranklab::cli {

struct MatrixRate {
  double flops = 0;       // a second, the median of five measurements
  std::int64_t size = 0;  // of the square matrices
};

// Square products of random values in `dtype`, as large as a GPU needs or a CPU can bear.
// Errors: ResourceExhausted; those of the device.
absl::StatusOr<MatrixRate> MeasureMatrixRate(compute::Device& device, compute::DType dtype);

}  // namespace ranklab::cli
