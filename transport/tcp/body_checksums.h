#pragma once

#include <cstdint>

namespace ranklab::transport {

// Which messages carry an XXH3 checksum of their body; headers always have one. The sender decides.
enum class BodyChecksums : std::uint8_t {
  kNever,
  kBetweenHosts,  // not where both ends have one address: nothing but this host's memory is crossed
  kAlways,
};

}  // namespace ranklab::transport
