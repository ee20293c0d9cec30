// Matrix products of the CPU: oneDNN's sgemm on parts of larger matrices.
#pragma once

#include <cstdint>

#include <absl/status/status.h>

namespace ranklab::compute {

// Row-major, as stored; a row begins `stride` elements after the one before it.
struct GemmOperand {
  const float* data = nullptr;
  std::int64_t stride = 0;
  bool transpose = false;
};

struct GemmShape {
  std::int64_t m = 0, k = 0, n = 0;
};

// c (m, n) = op(a) (m, k) x op(b) (k, n) + beta c on the calling thread. With beta 0, c need
// not hold numbers. Requires: k > 0. Errors: Internal, the library failed.
absl::Status Gemm(const GemmShape& shape, const GemmOperand& a, const GemmOperand& b, float beta,
                  float* c, std::int64_t c_stride);

}  // namespace ranklab::compute
