#include "compute/cpu_gemm.h"

#include <algorithm>
#include <vector>

#include <dnnl.hpp>
#include <omp.h>

#include "core/check.h"
#include "core/status.h"

namespace ranklab::compute {
namespace {

const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::memory::desc DescOf(const MatrixPart& part, std::int64_t rows, std::int64_t columns) {
  RANKLAB_CHECK(part.dtype == DType::kFloat32 || part.dtype == DType::kBFloat16);
  const auto type =
      part.dtype == DType::kFloat32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
  const dnnl::memory::dims strides =
      part.transpose ? dnnl::memory::dims{1, part.stride} : dnnl::memory::dims{part.stride, 1};
  return {{rows, columns}, type, strides};
}

// oneDNN keeps what it has made, by shape.
dnnl::matmul::primitive_desc MatMulOf(const GemmShape& shape, const MatrixPart& a,
                                      const MatrixPart& b, float beta, const MatrixPart& c) {
  dnnl::primitive_attr attributes;
  if (beta != 0.0F) {
    dnnl::post_ops add;
    add.append_sum(beta);
    attributes.set_post_ops(add);
  }
  return {dnnl::matmul::desc(DescOf(a, shape.m, shape.k), DescOf(b, shape.k, shape.n),
                             DescOf(c, shape.m, shape.n)),
          attributes, Engine()};
}

// Where k runs over rows, oneDNN walks down columns. Rows a multiple of 4 KiB apart then share few
// places of the cache, and the product takes twice as long: on Zen 3 with oneDNN 2.6, 32 to 38
// GFLOP/s for (1024, 1024) against 70 to 76 with Spread, its time included.
bool Collides(std::int64_t stride) { return stride % (4096 / sizeof(float)) == 0; }

constexpr std::int64_t kCacheLine = 64 / sizeof(float);
constexpr std::int64_t kSpreadElements = 2 << 20;  // of a copy: blocks of k above it
constexpr std::int64_t kLeastSpreadRows = 64;

// Rows of k copied to where they do not collide.
GemmOperand Spread(const GemmOperand& operand, std::int64_t rows, std::int64_t columns,
                   std::vector<float>& scratch) {
  std::int64_t stride = columns + kCacheLine;
  stride += Collides(stride) ? kCacheLine : 0;
  scratch.resize(std::max(scratch.size(), static_cast<std::size_t>(rows * stride)));
  for (std::int64_t row = 0; row < rows; ++row) {
    std::copy_n(operand.data + row * operand.stride, columns, scratch.data() + row * stride);
  }
  return {.data = scratch.data(), .stride = stride, .transpose = operand.transpose};
}

absl::Status GemmAsItIs(const GemmShape& shape, const GemmOperand& a, const GemmOperand& b,
                        float beta, float* c, std::int64_t c_stride) {
  // As fast as a cached matmul primitive (both are gemm:jit here), without one to keep.
  const dnnl_status_t result =
      dnnl_sgemm(a.transpose ? 'T' : 'N', b.transpose ? 'T' : 'N', shape.m, shape.n, shape.k, 1.0F,
                 a.data, a.stride, b.data, b.stride, beta, c, c_stride);
  if (result != dnnl_success) {
    return Internal("oneDNN's sgemm of (%d, %d) x (%d, %d) failed with status %d", shape.m, shape.k,
                    shape.k, shape.n, static_cast<int>(result));
  }
  return absl::OkStatus();
}

// Rows or columns of k from `k` on.
GemmOperand From(const GemmOperand& operand, bool k_in_rows, std::int64_t k) {
  return {.data = operand.data + k * (k_in_rows ? operand.stride : 1),
          .stride = operand.stride,
          .transpose = operand.transpose};
}

// In blocks of k, so that the copies stay small.
absl::Status GemmSpread(const GemmShape& shape, const GemmOperand& a, const GemmOperand& b,
                        float beta, float* c, std::int64_t c_stride) {
  thread_local std::vector<float> scratch_a, scratch_b;  // kept: no allocation in the next step
  const std::int64_t block =
      std::max(kSpreadElements / std::max(shape.m, shape.n), kLeastSpreadRows);
  for (std::int64_t k = 0; k < shape.k; k += block) {
    const std::int64_t rows = std::min(block, shape.k - k);
    GemmOperand left = From(a, a.transpose, k);
    GemmOperand right = From(b, !b.transpose, k);
    if (a.transpose && Collides(a.stride)) {
      left = Spread(left, rows, shape.m, scratch_a);
    }
    if (!b.transpose && Collides(b.stride)) {
      right = Spread(right, rows, shape.n, scratch_b);
    }
    RETURN_IF_ERROR(GemmAsItIs({.m = shape.m, .k = rows, .n = shape.n}, left, right,
                               k == 0 ? beta : 1.0F, c, c_stride));
  }
  return absl::OkStatus();
}

}  // namespace

GemmPart CutGemm(const MatMulShape& shape, int part, int parts) {
  const bool by_rows = shape.m >= shape.n;
  const std::int64_t length = by_rows ? shape.m : shape.n;
  const std::int64_t first = length * part / parts;
  const std::int64_t count = length * (part + 1) / parts - first;
  if (by_rows) {
    return {.shape = {.m = count, .k = shape.k, .n = shape.n},
            .a = first * (shape.transpose_a ? 1 : shape.k),
            .c = first * shape.n};
  }
  return {.shape = {.m = shape.m, .k = shape.k, .n = count},
          .b = first * (shape.transpose_b ? shape.k : 1),
          .c = first};
}

absl::Status Gemm(const GemmShape& shape, const GemmOperand& a, const GemmOperand& b, float beta,
                  float* c, std::int64_t c_stride) {
  if (shape.m == 0 || shape.n == 0) {
    return absl::OkStatus();
  }
  RANKLAB_CHECK(shape.k > 0, "a product over nothing");
  // oneDNN asks its OpenMP runtime, which keeps this number for each thread. With 1 it makes no
  // threads of its own; those would spin when idle.
  omp_set_num_threads(1);
  const bool collides = (a.transpose && Collides(a.stride)) || (!b.transpose && Collides(b.stride));
  return collides ? GemmSpread(shape, a, b, beta, c, c_stride)
                  : GemmAsItIs(shape, a, b, beta, c, c_stride);
}

absl::Status MixedGemm(const GemmShape& shape, const MatrixPart& a, const MatrixPart& b, float beta,
                       const MatrixPart& c) {
  if (shape.m == 0 || shape.n == 0) {
    return absl::OkStatus();
  }
  RANKLAB_CHECK(shape.k > 0, "a product over nothing");
  omp_set_num_threads(1);
  try {
    const dnnl::matmul::primitive_desc product = MatMulOf(shape, a, b, beta, c);
    dnnl::stream stream(Engine());
    dnnl::matmul(product).execute(stream,
                                  {{DNNL_ARG_SRC, {product.src_desc(), Engine(), a.data}},
                                   {DNNL_ARG_WEIGHTS, {product.weights_desc(), Engine(), b.data}},
                                   {DNNL_ARG_DST, {product.dst_desc(), Engine(), c.data}}});
    stream.wait();
  } catch (const dnnl::error& error) {
    return Internal("oneDNN's matmul of (%d, %d) x (%d, %d) failed: %s", shape.m, shape.k, shape.k,
                    shape.n, error.message);
  }
  return absl::OkStatus();
}

bool MultipliesBFloat16() {
  static const bool multiplies = [] {
    const MatrixPart one{.dtype = DType::kBFloat16, .stride = 1};
    try {
      MatMulOf({.m = 1, .k = 1, .n = 1}, one, one, 0.0F, one);
    } catch (const dnnl::error&) {
      return false;
    }
    return true;
  }();
  return multiplies;
}

}  // namespace ranklab::compute
