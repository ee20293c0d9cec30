// Elements of a tensor of any floating dtype, read and written as float32. The dtype is a value and
// not a type: every kernel exists once, and all its threads take the same branch.
#pragma once

#include <cstdint>

#include "compute/cuda/host_device.h"
#include "compute/dtype.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#else
#include "compute/cpu_convert.h"
#endif

namespace ranklab::compute::cuda {

struct Operand {
  void* data;
  DType dtype;
  bool aligned;  // four elements from a multiple of four of any row lie in one load
};

// `row` is the length of the rows that are walked one by one. Requires: a floating dtype.
inline Operand OperandOf(void* data, DType dtype, std::int64_t row) {
  const auto four = static_cast<std::uintptr_t>(4 * SizeOf(dtype));
  return {data, dtype, row % 4 == 0 && reinterpret_cast<std::uintptr_t>(data) % four == 0};
}

RANKLAB_HOST_DEVICE inline float FromBits(std::uint16_t bits, DType dtype) {
#ifdef __CUDACC__
  return dtype == DType::kBFloat16 ? __bfloat162float(__ushort_as_bfloat16(bits))
                                   : __half2float(__ushort_as_half(bits));
#else
  float value;
  Widen(reinterpret_cast<const std::byte*>(&bits), dtype, &value, 1);
  return value;
#endif
}

// To the nearest, ties to even; beyond the largest to infinity.
RANKLAB_HOST_DEVICE inline std::uint16_t ToBits(float value, DType dtype) {
#ifdef __CUDACC__
  return dtype == DType::kBFloat16 ? __bfloat16_as_ushort(__float2bfloat16_rn(value))
                                   : __half_as_ushort(__float2half_rn(value));
#else
  std::uint16_t bits;
  Narrow(&value, dtype, reinterpret_cast<std::byte*>(&bits), 1);
  return bits;
#endif
}

RANKLAB_HOST_DEVICE inline float Load(const Operand& from, std::int64_t i) {
  return from.dtype == DType::kFloat32
             ? static_cast<const float*>(from.data)[i]
             : FromBits(static_cast<const std::uint16_t*>(from.data)[i], from.dtype);
}

RANKLAB_HOST_DEVICE inline void Store(const Operand& to, std::int64_t i, float value) {
  if (to.dtype == DType::kFloat32) {
    static_cast<float*>(to.data)[i] = value;
  } else {
    static_cast<std::uint16_t*>(to.data)[i] = ToBits(value, to.dtype);
  }
}

struct Four {
  float at[4];
};
struct alignas(8) FourHalves {
  std::uint16_t at[4];
};
struct alignas(16) FourFloats {
  float at[4];
};

// Elements [i, i + count), 0 behind them. Requires: i a multiple of 4 within its row; count 1 to 4.
RANKLAB_HOST_DEVICE inline Four LoadFour(const Operand& from, std::int64_t i, int count) {
  Four values{};
  if (!from.aligned || count < 4) {
    for (int k = 0; k < count; ++k) {
      values.at[k] = Load(from, i + k);
    }
  } else if (from.dtype == DType::kFloat32) {
    const FourFloats four = static_cast<const FourFloats*>(from.data)[i / 4];
    for (int k = 0; k < 4; ++k) {
      values.at[k] = four.at[k];
    }
  } else {
    const FourHalves four = static_cast<const FourHalves*>(from.data)[i / 4];
    for (int k = 0; k < 4; ++k) {
      values.at[k] = FromBits(four.at[k], from.dtype);
    }
  }
  return values;
}

RANKLAB_HOST_DEVICE inline void StoreFour(const Operand& to, std::int64_t i, const Four& values,
                                          int count) {
  if (!to.aligned || count < 4) {
    for (int k = 0; k < count; ++k) {
      Store(to, i + k, values.at[k]);
    }
  } else if (to.dtype == DType::kFloat32) {
    FourFloats four;
    for (int k = 0; k < 4; ++k) {
      four.at[k] = values.at[k];
    }
    static_cast<FourFloats*>(to.data)[i / 4] = four;
  } else {
    FourHalves four;
    for (int k = 0; k < 4; ++k) {
      four.at[k] = ToBits(values.at[k], to.dtype);
    }
    static_cast<FourHalves*>(to.data)[i / 4] = four;
  }
}

}  // namespace ranklab::compute::cuda
