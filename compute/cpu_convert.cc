// Always optimised, whatever the build type (see CMakeLists.txt).
#include "compute/cpu_convert.h"

#include <bit>

#include "compute/vectorized.h"
#include "core/check.h"

namespace ranklab::compute {
namespace {

RANKLAB_VECTORIZED void WidenBFloat16(const std::uint16_t* __restrict from, float* __restrict to,
                                      std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = std::bit_cast<float>(static_cast<std::uint32_t>(from[i]) << 16);
  }
}

RANKLAB_VECTORIZED void NarrowToBFloat16(const float* __restrict from, std::uint16_t* __restrict to,
                                         std::int64_t count) {
  constexpr std::uint32_t kQuietNan = 0x7FC0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(from[i]);
    const std::uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    to[i] = static_cast<std::uint16_t>(from[i] != from[i] ? kQuietNan : rounded);
  }
}

// float16 has 5 bits of exponent and 10 of fraction. Both directions without branches on a value's
// kind that a vector could not select by. Source: F. Giesen, "half_to_float_fast5" and
// "float_to_half_rtne", public domain, 2012.
RANKLAB_VECTORIZED void WidenFloat16(const std::uint16_t* __restrict from, float* __restrict to,
                                     std::int64_t count) {
  constexpr std::uint32_t kExponent = 0x7C00U << 13;
  constexpr std::uint32_t kRebias = (127U - 15) << 23;
  constexpr std::uint32_t kSmallest = 113U << 23;  // 2^-14, the smallest normal float16
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t magnitude = (from[i] & 0x7FFFU) << 13;
    const std::uint32_t exponent = magnitude & kExponent;
    const std::uint32_t normal = magnitude + kRebias;
    const std::uint32_t infinite = normal + ((128U - 16) << 23);
    const float subnormal =
        std::bit_cast<float>(normal + (1U << 23)) - std::bit_cast<float>(kSmallest);
    std::uint32_t bits = exponent == kExponent ? infinite : normal;
    bits = exponent == 0 ? std::bit_cast<std::uint32_t>(subnormal) : bits;
    to[i] = std::bit_cast<float>(bits | (from[i] & 0x8000U) << 16);
  }
}

RANKLAB_VECTORIZED void NarrowToFloat16(const float* __restrict from, std::uint16_t* __restrict to,
                                        std::int64_t count) {
  constexpr std::uint32_t kInfinity = 0x7F800000;
  constexpr std::uint32_t kTooLarge = (127U + 16) << 23;  // 2^16
  constexpr std::uint32_t kSmallest = 113U << 23;
  // Added to a small number, leaves its float16 fraction in the lowest bits, rounded.
  constexpr std::uint32_t kRounder = ((127U - 15) + (23 - 10) + 1) << 23;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(from[i]);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    const std::uint32_t large = magnitude > kInfinity ? 0x7E00U : 0x7C00U;
    const std::uint32_t small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) +
                                                             std::bit_cast<float>(kRounder)) -
                                kRounder;
    const std::uint32_t normal =
        (magnitude + ((15U - 127) << 23) + 0xFFFU + ((magnitude >> 13) & 1)) >> 13;
    std::uint32_t half = magnitude < kSmallest ? small : normal;
    half = magnitude >= kTooLarge ? large : half;
    to[i] = static_cast<std::uint16_t>(half | (bits & 0x80000000U) >> 16);
  }
}

}  // namespace

void Widen(const std::byte* from, DType dtype, float* to, std::int64_t count) {
  if (dtype == DType::kBFloat16) {
    WidenBFloat16(reinterpret_cast<const std::uint16_t*>(from), to, count);
  } else {
    RANKLAB_CHECK(dtype == DType::kFloat16);
    WidenFloat16(reinterpret_cast<const std::uint16_t*>(from), to, count);
  }
}

void Narrow(const float* from, DType dtype, std::byte* to, std::int64_t count) {
  if (dtype == DType::kBFloat16) {
    NarrowToBFloat16(from, reinterpret_cast<std::uint16_t*>(to), count);
  } else {
    RANKLAB_CHECK(dtype == DType::kFloat16);
    NarrowToFloat16(from, reinterpret_cast<std::uint16_t*>(to), count);
  }
}

}  // namespace ranklab::compute
