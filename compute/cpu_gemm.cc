#include "compute/cpu_gemm.h"

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
