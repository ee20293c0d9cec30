#include "compute/make_device.h"

#include <utility>

#include "compute/cuda/cuda_device.h"
#include "compute/device.h"
#include "core/status.h"

namespace ranklab::compute {
namespace {

absl::StatusOr<std::unique_ptr<Device>> MakeCuda(const DeviceOptions& options) {
  ASSIGN_OR_RETURN(const int devices, cuda::DeviceCount());
  return cuda::MakeCudaDevice(
      {.ordinal = options.place % devices, .cap = options.cap, .tf32 = options.tf32});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> MakeDevice(std::string_view name,
                                                   const DeviceOptions& options) {
  if (name == "cuda") {
    return MakeCuda(options);
  }
  if (name == "auto") {
    auto gpu = MakeCuda(options);
    return gpu.ok() ? std::move(gpu) : MakeDevice("cpu", options);
  }
  if (name == "cpu") {
    return std::make_unique<CpuDevice>(CpuOptions{.threads = options.threads, .cap = options.cap});
  }
  return InvalidArgument("device is \"%s\"; one of auto, cpu, cuda", name);
}

}  // namespace ranklab::compute
