// How long a device would take: one function that the live hold, the prediction and the simulator
// share.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <absl/status/statusor.h>

#include "core/units.h"

namespace ranklab::fabric {

struct DeviceModel {
  std::string_view name{};      // "a100"
  std::string_view words{};     // "A100 SXM 80 GB"
  double fp32_peak = 0;         // nominal, outside the tensor cores, per second
  double bf16_peak = 0;         // nominal, dense, in the tensor cores, per second
  double fp32_flops = 0;        // achieved outside the tensor cores, per second: peak x efficiency
  double bf16_flops = 0;        // achieved in the tensor cores, per second
  double memory_bandwidth = 0;  // nominal, bytes per second
  std::string_view source{};    // of every figure, and which are assumed
};

std::span<const DeviceModel> DeviceModels();  // v100, a100, h100

// Errors: InvalidArgument, with the nearest name.
absl::StatusOr<DeviceModel> FindDeviceModel(std::string_view name);

enum class Precision : std::uint8_t { kFp32, kBf16 };

struct Operation {
  double flops = 0;
  double bytes = 0;  // read and written
  Precision precision = Precision::kFp32;
};

// max(FLOPs / achieved rate, bytes / memory bandwidth) + overhead. Source: Williams, Waterman and
// Patterson, "Roofline", CACM 52(4), 2009, and a fixed cost a kernel.
Nanos TimeOf(const DeviceModel& device, const Operation& operation, Nanos overhead);

}  // namespace ranklab::fabric
