// Matrix products by cuBLASLt, which is loaded at run time: it is larger than all of ranklab, and a
// machine without a GPU has none.
#pragma once

#include <memory>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "compute/cuda/launch.h"
#include "compute/operations.h"
#include "compute/tensor.h"

namespace ranklab::compute::cuda {

// Is cuBLASLt on this machine, with everything that is called? Wants no GPU.
// Errors: FailedPrecondition, in words that say where it was looked for.
absl::Status FindCublasLt();

struct ProductOptions {
  Stream stream = nullptr;
  bool tf32 = false;  // of float32 factors
};

class MatrixProducts {
 public:
  virtual ~MatrixProducts() = default;

  // As Operations::MatMul. Sums are in float32; 16-bit factors of one dtype, into that or into
  // float32. Errors: Unimplemented, other dtypes; Internal, cuBLASLt failed.
  virtual absl::Status Multiply(const MatMulShape& shape, const TensorView& a, const TensorView& b,
                                float beta, const TensorView& c) = 0;
};

// On the current device. Errors: FailedPrecondition, as FindCublasLt; Internal; ResourceExhausted.
absl::StatusOr<std::unique_ptr<MatrixProducts>> MakeMatrixProducts(const ProductOptions& options);

}  // namespace ranklab::compute::cuda
