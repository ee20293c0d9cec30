// What operations_on_device_test.cc tests: two programs have it, one with a GPU (label gpu), one
// with the GPU's kernels on the host (label unit).
#pragma once

#include <absl/status/statusor.h>

#include "compute/tensor.h"

namespace ranklab::compute::cuda {

// Errors: why there is none on this machine; the tests are skipped with that.
absl::StatusOr<Device*> DeviceUnderTest();

}  // namespace ranklab::compute::cuda
