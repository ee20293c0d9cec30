#include "compute/device.h"

#include "core/status.h"

namespace ranklab::compute {

absl::StatusOr<std::unique_ptr<Device>> MakeDevice(std::string_view name,
                                                   const CpuOptions& options) {
  if (name == "cpu" || name == "auto") {
    return std::make_unique<CpuDevice>(options);
  }
  if (name == "cuda") {
    return Unimplemented("device cuda: this build has no CUDA; one of auto, cpu");
  }
  return InvalidArgument("device is \"%s\"; one of auto, cpu, cuda", name);
}

}  // namespace ranklab::compute
