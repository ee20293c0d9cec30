// The fitted constants of the training-step model: one set per generation of devices.
#pragma once

#include <string_view>

#include "sim/cluster/accelerator.h"

namespace ranklab::sim {

struct Calibration {
  // Fitted on A100 rows (see calibration.cc for which).
  double matrix_efficiency = 0;   // of tensor_flops, in a large matrix product
  double memory_efficiency = 0;   // of memory_bandwidth, in operations bound by it
  double kernel_seconds = 0;      // a kernel's fixed cost
  double inner_half = 0;          // inner dimension that halves a matrix product's rate
  double inside_efficiency = 0;   // of a fabric's `inside` that a collective reaches
  double between_efficiency = 0;  // of a fabric's `between`
  // Stated, not fitted: assumed.
  double collective_seconds = 0;  // of starting a collective
  double overlap_slowdown = 0;    // of compute while a collective runs beside it
  double update_bytes = 0;        // read and written by the optimizer, a parameter
};

// A generation's own measured matrix product, relative to the A100's, scales matrix_efficiency; the
// other constants are the A100's (assumed to carry over).
Calibration CalibrationOf(const Accelerator& accelerator);

}  // namespace ranklab::sim
