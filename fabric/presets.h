// Networks by name, with the source of every figure.
#pragma once

#include <span>
#include <string_view>

#include <absl/status/statusor.h>

#include "fabric/link_model.h"

namespace ranklab::fabric {

struct Preset {
  std::string_view name;    // "pcie4_x16"
  std::string_view words;   // "PCIe 4.0 x16"
  LinkSpec port;            // of each rank, each direction, undilated; no jitter, no loss
  std::string_view source;  // of bandwidth and alpha, and which are assumed
};

// pcie3_x16, pcie4_x16, pcie5_x16; nvlink2 to nvlink5; ib_edr, ib_hdr, ib_ndr, ib_xdr; ethernet_1g,
// ethernet_10g, ethernet_25g, ethernet_100g.
std::span<const Preset> Presets();

// Errors: InvalidArgument, with the names there are and the nearest.
absl::StatusOr<Preset> FindPreset(std::string_view name);

// Time on this machine = modelled time x scale: latency, jitter and time-out grow, bandwidth
// shrinks. Requires: time_scale > 0. Instants saturate.
LinkSpec Dilate(const LinkSpec& spec, double time_scale);

}  // namespace ranklab::fabric
