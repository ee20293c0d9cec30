#include "compute/cpu_gemm.h"

#include <dnnl.h>
#include <omp.h>

#include "core/check.h"
#include "core/status.h"

namespace ranklab::compute {

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

}  // namespace ranklab::compute
