#include "fabric/device_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/nearest.h"
#include "core/status.h"

namespace ranklab::fabric {
namespace {

// The share of a peak that the best measured bf16 matrix product of a device reaches (measured
// TFLOP/s over peak TFLOP/s; stas00/ml-engineering). Assumed to hold for fp32 as well.
constexpr double kA100Efficiency = 271.2 / 312;
constexpr double kH100Efficiency = 794.5 / 989;

constexpr std::array<DeviceModel, 3> kDevices = {{
    {.name = "v100",
     .words = "V100 SXM2 16 GB",
     .fp32_peak = 15.7e12,
     .bf16_peak = 125e12,
     .fp32_flops = 15.7e12 * kA100Efficiency,
     .bf16_flops = 125e12 * kA100Efficiency,
     .memory_bandwidth = 900e9,
     .source = "peaks 15.7 fp32, 125 fp16 (no bf16: fp16 stands in) TFLOP/s and 900 GB/s: Dell "
               "reference guide; assumed: efficiency 0.87 as measured on the A100"},
    {.name = "a100",
     .words = "A100 SXM 80 GB",
     .fp32_peak = 19.5e12,
     .bf16_peak = 312e12,
     .fp32_flops = 19.5e12 * kA100Efficiency,
     .bf16_flops = 271.2e12,
     .memory_bandwidth = 2039e9,
     .source = "peak 19.5 fp32 TFLOP/s, measured 271.2 bf16: stas00/ml-engineering; 2039 GB/s "
               "(unverified); assumed: fp32 efficiency 0.87 as measured for bf16"},
    {.name = "h100",
     .words = "H100 SXM 80 GB",
     .fp32_peak = 67e12,
     .bf16_peak = 989e12,
     .fp32_flops = 67e12 * kH100Efficiency,
     .bf16_flops = 794.5e12,
     .memory_bandwidth = 3350e9,
     .source = "peak 67 fp32 TFLOP/s, measured 794.5 bf16, 3350 GB/s: stas00/ml-engineering; "
               "assumed: fp32 efficiency 0.80 as measured for bf16"},
}};

}  // namespace

std::span<const DeviceModel> DeviceModels() { return kDevices; }

absl::StatusOr<DeviceModel> FindDeviceModel(std::string_view name) {
  std::vector<std::string_view> names;
  for (const DeviceModel& device : kDevices) {
    if (device.name == name) {
      return device;
    }
    names.push_back(device.name);
  }
  return InvalidArgument("no device model \"%s\"; %s%s", name, OneOf(names),
                         DidYouMean(name, names));
}

Nanos TimeOf(const DeviceModel& device, const Operation& operation, Nanos overhead) {
  const double rate =
      operation.precision == Precision::kFp32 ? device.fp32_flops : device.bf16_flops;
  const double seconds =
      std::max(operation.flops / rate, operation.bytes / device.memory_bandwidth);
  return Nanos(std::llround(seconds * 1e9)) + overhead;
}

}  // namespace ranklab::fabric
