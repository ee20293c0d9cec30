// Networks by name, with the source of every figure.
#pragma once

#include <span>
#include <string_view>

#include <absl/status/statusor.h>

#include "fabric/link_model.h"

namespace ranklab::fabric {

struct Preset {
  std::string_view name;   // "pcie4_x16"
  std::string_view words;  // "PCIe 4.0 x16"
  LinkSpec port;           // of each rank, each direction, undilated
  std::string_view source;
};

// PCIe 3/4/5 x16, NVLink 2/3/4/5, InfiniBand EDR/HDR/NDR/XDR, Ethernet 1/10/25/100G.
std::span<const Preset> Presets();

// Errors: InvalidArgument, with the nearest name.
absl::StatusOr<Preset> FindPreset(std::string_view name);

// Time on this machine = modelled time x scale. Latency and jitter grow, bandwidth shrinks.
LinkSpec Dilate(const LinkSpec& spec, double time_scale);

}  // namespace ranklab::fabric
