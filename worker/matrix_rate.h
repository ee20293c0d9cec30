// How fast this rank multiplies matrices: the peak that a native run is held against.
#pragma once

#include <absl/status/statusor.h>

#include "compute/tensor.h"
#include "core/event_loop.h"

namespace ranklab::worker {

// FLOPs a second of the best of 40 products of square matrices of 256, in `dtype`; some
// milliseconds. The best, since others may use the cores meanwhile: a peak is not a mean.
// Errors: ResourceExhausted; the device's own.
absl::StatusOr<double> MeasureMatrixRate(compute::Device& device, compute::DType dtype,
                                         const EventLoop& clock);

}  // namespace ranklab::worker
