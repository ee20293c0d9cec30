// Matrix products of the CPU: oneDNN's, on parts of larger matrices.
#pragma once

#include <cstddef>
#include <cstdint>

#include <absl/status/status.h>

#include "compute/operations.h"
#include "compute/tensor.h"

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

// One of `parts` slices of a product, along the longer side of its result: its size, and where it
// begins in what is stored, in elements.
struct GemmPart {
  GemmShape shape;
  std::int64_t a = 0, b = 0, c = 0;
};
GemmPart CutGemm(const MatMulShape& shape, int part, int parts);

// c (m, n) = op(a) (m, k) x op(b) (k, n) + beta c on the calling thread. With beta 0, c need
// not hold numbers. Requires: k > 0. Errors: Internal, the library failed.
absl::Status Gemm(const GemmShape& shape, const GemmOperand& a, const GemmOperand& b, float beta,
                  float* c, std::int64_t c_stride);

// The same with a dtype an operand, float32 or bfloat16; sums are float32 and rounded once.
struct MatrixPart {
  std::byte* data = nullptr;
  DType dtype = DType::kFloat32;
  std::int64_t stride = 0;
  bool transpose = false;
};
absl::Status MixedGemm(const GemmShape& shape, const MatrixPart& a, const MatrixPart& b, float beta,
                       const MatrixPart& c);

// Has this processor what MixedGemm needs for bfloat16? oneDNN wants AVX-512 at least.
bool MultipliesBFloat16();

}  // namespace ranklab::compute
