// Version and wire protocol: equal in every process of a cluster, or they refuse each other.
#pragma once

namespace ranklab::cli {

inline constexpr char kVersion[] = "0.1.0";
inline constexpr char kBuild[] = "ranklab 0.1.0 wire 1";

}  // namespace ranklab::cli
