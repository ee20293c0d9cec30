// Element types. Without headers of packages, so that device code includes it too.
#pragma once

#include <cstdint>

#include "core/units.h"

namespace ranklab::compute {

enum class DType : std::uint8_t { kFloat32, kBFloat16, kFloat16, kInt32 };

constexpr Bytes SizeOf(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kInt32 ? 4 : 2;
}

constexpr bool Is16Bit(DType dtype) {
  return dtype == DType::kBFloat16 || dtype == DType::kFloat16;
}

}  // namespace ranklab::compute
