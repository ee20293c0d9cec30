#include "fabric/presets.h"

#include <array>
#include <cmath>
#include <vector>

#include "core/check.h"
#include "core/nearest.h"
#include "core/status.h"

namespace ranklab::fabric {
namespace {

constexpr LinkSpec Port(double alpha_us, double gigabytes_per_second) {
  return {.alpha = std::chrono::round<Nanos>(std::chrono::duration<double, std::micro>(alpha_us)),
          .bandwidth = {gigabytes_per_second * 1e9}};
}

// Bandwidth: what NCCL's model assumes, where it has one; it is below the nominal rate, as measured
// transfers are. Alpha: NCCL's hop latencies of a ring (v2.30.7), Ethernet: published ranges.
constexpr std::array<Preset, 15> kPresets = {{
    {"pcie3_x16", "PCIe 3.0 x16", Port(2.5, 12),
     "12 GB/s: NCCL model (NVIDIA/nccl src/graph/topo.h; nominal 15.75); 2.5 us: NCCL hop, PCI "
     "ring LL128 (1.8 to 5.7 published)"},
    {"pcie4_x16", "PCIe 4.0 x16", Port(2.5, 24),
     "24 GB/s: NCCL model (nominal 31); 2.5 us: NCCL hop, PCI ring LL128 (1.8 to 5.7 published)"},
    {"pcie5_x16", "PCIe 5.0 x16", Port(2.5, 48),
     "48 GB/s: NCCL model (nominal 63); 2.5 us: NCCL hop, PCI ring LL128 (1.8 to 5.7 published)"},
    {"nvlink2", "NVLink 2 (V100, 6 links)", Port(1.9, 120),
     "120 GB/s: NCCL model, 6 links (nominal 150); 1.9 us: NCCL hop, NVLink ring LL128; assumed: "
     "that it holds for this generation"},
    {"nvlink3", "NVLink 3 (A100, 12 links)", Port(1.9, 240),
     "240 GB/s: NCCL model, 12 links (nominal 300, measured 274); 1.9 us: NCCL hop, NVLink ring "
     "LL128 (1.9 to 3.4 published)"},
    {"nvlink4", "NVLink 4 (H100, 18 links)", Port(1.9, 370.8),
     "370.8 GB/s: NCCL model, 18 links (nominal 450, measured 376); 1.9 us: NCCL hop, NVLink ring "
     "LL128 (1.9 to 3.4 published)"},
    {"nvlink5", "NVLink 5 (B200, 18 links)", Port(1.9, 721.8),
     "721.8 GB/s: NCCL model, 18 links (nominal 900, measured 746); 1.9 us: NCCL hop, NVLink ring "
     "LL128 (1.9 to 3.4 published)"},
    {"ib_edr", "InfiniBand EDR, 100 Gb/s", Port(2.7, 12.5),
     "12.5 GB/s: line rate (stas00/ml-engineering); 2.7 us: NCCL hop, network ring LL (adapter "
     "alone 0.5 us); assumed: that it holds for this generation"},
    {"ib_hdr", "InfiniBand HDR, 200 Gb/s", Port(2.7, 25),
     "25 GB/s: line rate (stas00/ml-engineering); 2.7 us: NCCL hop, network ring LL (adapter alone "
     "0.6 us)"},
    {"ib_ndr", "InfiniBand NDR, 400 Gb/s", Port(2.7, 50),
     "50 GB/s: line rate (stas00/ml-engineering); 2.7 us: NCCL hop, network ring LL (adapter "
     "latency not published)"},
    {"ib_xdr", "InfiniBand XDR, 800 Gb/s", Port(2.7, 100),
     "100 GB/s: line rate (stas00/ml-engineering); latency not published; assumed: 2.7 us as NDR"},
    {"ethernet_1g", "1 Gb/s Ethernet, TCP", Port(30, 0.117),
     "assumed: 0.117 GB/s, 94 % of the line rate for TCP payload; 30 us: kernel stack (10 to 60 "
     "published, secondary source)"},
    {"ethernet_10g", "10 Gb/s Ethernet, TCP", Port(30, 1.1),
     "assumed: 1.1 GB/s, typical TCP payload (line rate 1.25); 30 us: kernel stack (10 to 60 "
     "published, secondary source)"},
    {"ethernet_25g", "25 Gb/s Ethernet, TCP", Port(30, 2.8),
     "assumed: 2.8 GB/s, typical TCP payload (line rate 3.125); 30 us: kernel stack (10 to 60 "
     "published, secondary source)"},
    {"ethernet_100g", "100 Gb/s Ethernet, RoCE", Port(2.7, 12),
     "12 GB/s: NCCL default for 100 GbE RoCE (line rate 12.5); 2.7 us: NCCL hop, network ring LL "
     "(0.8 to 14 published)"},
}};

Nanos Stretch(Nanos time, double scale) {
  const double nanos = static_cast<double>(time.count()) * scale;
  return nanos < 0x1p63 ? Nanos(std::llround(nanos)) : Nanos::max();
}

}  // namespace

std::span<const Preset> Presets() { return kPresets; }

absl::StatusOr<Preset> FindPreset(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Preset& preset : kPresets) {
    if (preset.name == name) {
      return preset;
    }
    names.push_back(preset.name);
  }
  return InvalidArgument("no network preset \"%s\"; %s%s", name, OneOf(names),
                         DidYouMean(name, names));
}

LinkSpec Dilate(const LinkSpec& spec, double time_scale) {
  RANKLAB_CHECK(time_scale > 0, "time scale %g", time_scale);
  LinkSpec dilated = spec;
  dilated.alpha = Stretch(spec.alpha, time_scale);
  dilated.jitter = Stretch(spec.jitter, time_scale);
  dilated.retransmit_after = Stretch(spec.retransmit_after, time_scale);
  dilated.bandwidth.bytes_per_second = spec.bandwidth.bytes_per_second / time_scale;
  return dilated;
}

}  // namespace ranklab::fabric
