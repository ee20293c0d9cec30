// The device under test is the first GPU. It is never closed: at exit the driver may go before it.
#include "compute/cuda/cuda_device.h"
#include "tests/compute/cuda/device_under_test.h"

namespace ranklab::compute::cuda {

absl::StatusOr<Device*> DeviceUnderTest() {
  static auto* const device = new absl::StatusOr<std::unique_ptr<CudaDevice>>(MakeCudaDevice({}));
  if (!device->ok()) {
    return device->status();
  }
  return (*device)->get();
}

}  // namespace ranklab::compute::cuda
