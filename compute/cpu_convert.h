// float32 to bfloat16 and float16 and back, on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/tensor.h"

namespace ranklab::compute {

// Exact. Requires: `dtype` is kBFloat16 or kFloat16; nothing overlaps.
void Widen(const std::byte* from, DType dtype, float* to, std::int64_t count);

// To the nearest, of two that are as near to the even one; beyond the largest number to infinity.
// Requires: as Widen.
void Narrow(const float* from, DType dtype, std::byte* to, std::int64_t count);

}  // namespace ranklab::compute
