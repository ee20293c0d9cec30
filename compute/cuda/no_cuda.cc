// Compiled instead of all other files here where the build found no CUDA.
#include "compute/cuda/cuda_device.h"
#include "core/status.h"

namespace ranklab::compute::cuda {

absl::StatusOr<int> DeviceCount() {
  return Unimplemented("device cuda: this build has no CUDA");
}

absl::StatusOr<std::unique_ptr<CudaDevice>> MakeCudaDevice(const CudaOptions&) {
  return DeviceCount().status();
}

}  // namespace ranklab::compute::cuda
