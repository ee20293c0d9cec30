// Logarithms of group sizes.
#pragma once

#include <bit>

namespace ranklab {

// Require: n >= 1.
constexpr int FloorLog2(int n) { return std::bit_width(static_cast<unsigned>(n)) - 1; }
constexpr int CeilLog2(int n) { return std::bit_width(static_cast<unsigned>(n) - 1U); }

}  // namespace ranklab
