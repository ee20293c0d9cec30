#include "sim/cluster/accelerator.h"

#include <array>
#include <string>
#include <vector>

#include "core/nearest.h"
#include "core/status.h"

namespace ranklab::sim {
namespace {

constexpr std::string_view kSpecs =
    "data sheets by way of stas00/ml-engineering and Dell's guide (secondary sources); "
    "achieved: stas00/ml-engineering; prices assumed";

// Hop latencies of NCCL 2.30.7's model, protocol Simple: NVIDIA/nccl src/graph/tuning.cc.
constexpr double kNvlinkHop = 3.4e-6;
constexpr double kPcieHop = 5.7e-6;
constexpr double kNetworkHop = 14e-6;

constexpr std::array kAccelerators = {
    Accelerator{.name = "v100",
                .words = "V100 SXM2 32 GB",
                .tensor_flops = 125e12,
                .memory_bytes = 32e9,
                .memory_bandwidth = 900e9,
                .watts = 300,
                .multiprocessors = 80,
                .source = kSpecs},
    Accelerator{.name = "a100",
                .words = "A100 SXM 80 GB",
                .tensor_flops = 312e12,
                .achieved_flops = 271.2e12,
                .memory_bytes = 80e9,
                .memory_bandwidth = 2039e9,
                .watts = 400,
                .dollars_hour = {0.8, 1.6, 3.0},
                .multiprocessors = 108,
                .source = kSpecs},
    Accelerator{.name = "h100",
                .words = "H100 SXM 80 GB",
                .tensor_flops = 989e12,
                .achieved_flops = 794.5e12,
                .memory_bytes = 80e9,
                .memory_bandwidth = 3350e9,
                .watts = 700,
                .dollars_hour = {1.5, 2.95, 6.9},
                .multiprocessors = 132,
                .source = kSpecs},
    Accelerator{.name = "h200",
                .words = "H200 SXM 141 GB",
                .tensor_flops = 989e12,
                .achieved_flops = 794.5e12,
                .memory_bytes = 141e9,
                .memory_bandwidth = 4800e9,
                .watts = 700,
                .dollars_hour = {2.5, 4.0, 7.0},
                .multiprocessors = 132,
                .source = "as h100; achieved rate taken from H100 (assumed)"},
    Accelerator{.name = "b200",
                .words = "B200 180 GB",
                .tensor_flops = 2250e12,
                .achieved_flops = 1745e12,
                .memory_bytes = 180e9,
                .memory_bandwidth = 8000e9,
                .watts = 1000,
                .multiprocessors = 148,
                .source = kSpecs},
    Accelerator{.name = "l40s",
                .words = "L40S 48 GB",
                .tensor_flops = 362e12,
                .memory_bytes = 48e9,
                .memory_bandwidth = 864e9,
                .watts = 350,
                .multiprocessors = 142,
                .source = kSpecs},
    Accelerator{.name = "rtx4090",
                .words = "RTX 4090 24 GB",
                .tensor_flops = 165.2e12,
                .memory_bytes = 24e9,
                .memory_bandwidth = 1008e9,
                .watts = 450,
                .multiprocessors = 128,
                .source = kSpecs},
};

constexpr std::array kFabrics = {
    Fabric{.name = "dgx_v100_edr",
           .node_devices = 8,
           .inside = 150e9,
           .between = 50e9,
           .inside_hop = kNvlinkHop,
           .between_hop = kNetworkHop,
           .source = "NVLink 2, 4 ports of EDR a node"},
    Fabric{.name = "dgx_a100_hdr",
           .node_devices = 8,
           .inside = 300e9,
           .between = 200e9,
           .inside_hop = kNvlinkHop,
           .between_hop = kNetworkHop,
           .source = "NVLink 3 through NVSwitch, 8 ports of HDR a node"},
    Fabric{.name = "p4d_a100_efa",
           .node_devices = 8,
           .inside = 300e9,
           .between = 50e9,
           .inside_hop = kNvlinkHop,
           .between_hop = kNetworkHop,
           .source = "NVLink 3, 4 ports of 100 Gb/s a node"},
    Fabric{.name = "vtrain_a100",
           .node_devices = 8,
           .inside = 300e9,
           .between = 89.4e9,
           .inside_hop = kNvlinkHop,
           .between_hop = kNetworkHop,
           .source = "NVLink 3; between nodes not published: fitted on vTrain's rows"},
    Fabric{.name = "dgx_h100_ndr",
           .node_devices = 8,
           .inside = 450e9,
           .between = 400e9,
           .inside_hop = kNvlinkHop,
           .between_hop = kNetworkHop,
           .source = "NVLink 4 through NVSwitch, 8 ports of NDR a node"},
    Fabric{.name = "dgx_b200_ndr",
           .node_devices = 8,
           .inside = 900e9,
           .between = 400e9,
           .inside_hop = kNvlinkHop,
           .between_hop = kNetworkHop,
           .source = "NVLink 5 through NVSwitch, 8 ports of NDR a node"},
    Fabric{.name = "pcie4_100gbe",
           .node_devices = 8,
           .inside = 24e9,
           .between = 12.5e9,
           .inside_hop = kPcieHop,
           .between_hop = 2 * kNetworkHop,
           .source = "PCIe 4.0 x16 as NCCL models it, one port of 100 Gb/s Ethernet a node"},
    Fabric{.name = "ethernet_10g",
           .node_devices = 1,
           .inside = 1.25e9,
           .between = 1.25e9,
           .inside_hop = 30e-6,
           .between_hop = 30e-6,
           .source = "one device a machine, 10 Gb/s Ethernet with kernel TCP"},
};

template <typename Row, std::size_t n>
absl::StatusOr<Row> Find(const std::array<Row, n>& rows, const char* what, std::string_view name) {
  std::vector<std::string_view> names;
  for (const Row& row : rows) {
    if (row.name == name) {
      return row;
    }
    names.push_back(row.name);
  }
  const std::string advice = DidYouMean(name, names);
  return InvalidArgument("no %s is called \"%s\"%s", what, name,
                         advice.empty() ? "; " + OneOf(names) : advice);
}

}  // namespace

std::span<const Accelerator> Accelerators() { return kAccelerators; }
std::span<const Fabric> Fabrics() { return kFabrics; }

absl::StatusOr<Accelerator> FindAccelerator(std::string_view name) {
  return Find(kAccelerators, "accelerator", name);
}

absl::StatusOr<Fabric> FindFabric(std::string_view name) { return Find(kFabrics, "fabric", name); }

}  // namespace ranklab::sim
