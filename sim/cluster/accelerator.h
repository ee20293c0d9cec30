// Devices and clusters as data: what the training-step model reads. Rates are nominal unless they
// are called achieved; all figures carry their source.
#pragma once

#include <span>
#include <string_view>

#include <absl/status/statusor.h>

namespace ranklab::sim {

struct Accelerator {
  std::string_view name{};
  std::string_view words{};
  double tensor_flops = 0;    // dense, 16 bits in, 32 bits accumulated; per second
  double achieved_flops = 0;  // best measured matrix product; 0: none published
  double memory_bytes = 0;
  double memory_bandwidth = 0;  // bytes a second
  double watts = 0;             // thermal design power
  double dollars_hour[3] = {};  // low, middle, high; assumed, from price pages of 2026; 0: none
  int multiprocessors = 0;
  std::string_view source{};
};

std::span<const Accelerator> Accelerators();

// Nodes of equal devices, joined inside by `inside` and between by `between`.
struct Fabric {
  std::string_view name{};
  int node_devices = 8;
  double inside = 0;      // bytes a second, one way, a device
  double between = 0;     // bytes a second, one way, a whole node
  double inside_hop = 0;  // seconds a step of a collective
  double between_hop = 0;
  std::string_view source{};
};

std::span<const Fabric> Fabrics();

// Errors: InvalidArgument, with the nearest name.
absl::StatusOr<Accelerator> FindAccelerator(std::string_view name);
absl::StatusOr<Fabric> FindFabric(std::string_view name);

}  // namespace ranklab::sim
