// The operations of a model, over tensors of one device. Row-major; shapes at every argument. The
// free functions check shapes, dtypes and devices once and call the device's Operations; a new kind
// of device implements that interface and nothing else changes. CostOf* say what one costs, which
// the modelled time is made from.
#pragma once

#include <cstdint>
#include <span>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "compute/tensor.h"
#include "fabric/device_model.h"

namespace ranklab::compute {

enum class Transpose : std::uint8_t { kNo, kYes };

// All functions. Requires: float32 where not said otherwise, shapes as given, all tensors on one
// device, nothing overlapping but what is in place. Errors: Internal, the device's library failed.

// c (m, n) = op(a) (m, k) x op(b) (k, n) + beta c; op transposes what is stored. With beta 0, c
// need not hold numbers.
absl::Status MatMul(const TensorView& a, Transpose transpose_a, const TensorView& b,
                    Transpose transpose_b, float beta, const TensorView& c);

// x (rows, n) becomes max(0, x + bias) or x + bias; bias (n).
absl::Status AddBiasRelu(const TensorView& x, const TensorView& bias);
absl::Status AddBias(const TensorView& x, const TensorView& bias);

// dy becomes 0 where y <= 0. y (rows, n) is the output of the ReLU.
absl::Status ReluBackward(const TensorView& y, const TensorView& dy);

// out (n) += sum over rows of x (rows, n).
absl::Status AccumulateRowSums(const TensorView& x, const TensorView& out);

// logits (rows, classes), labels int32 (rows). Writes the gradient of the *sum* of losses over the
// logits and returns the sum of losses, in double precision, and the rows whose first largest logit
// is the label. Waits for the device. Errors: InvalidArgument, a label that is no class.
struct LossSum {
  double loss = 0;
  std::int64_t correct = 0;
};
absl::StatusOr<LossSum> SoftmaxCrossEntropy(const TensorView& logits, const TensorView& labels,
                                            const TensorView& gradient);

// With g = scale x gradient: parameters -= learning_rate x g. All (n).
absl::Status SgdUpdate(const TensorView& parameters, const TensorView& gradients, float scale,
                       float learning_rate);

// velocity = momentum x velocity + g; parameters -= learning_rate x velocity. All (n).
absl::Status MomentumUpdate(const TensorView& parameters, const TensorView& gradients,
                            const TensorView& velocity, float scale, float learning_rate,
                            float momentum);

// Every element becomes 0.
absl::Status FillZero(const TensorView& x);

// Between the caller's host memory and a device. Requires: equal byte counts; host.device nullptr.
// Waits for the copy.
absl::Status CopyFromHost(const TensorView& host, const TensorView& x);
absl::Status CopyToHost(const TensorView& x, const TensorView& host);

// 2 m k n FLOPs; each matrix crosses the memory bus once.
fabric::Operation CostOfMatMul(std::int64_t m, std::int64_t k, std::int64_t n);
// One FLOP an element; `reads` and `writes` float32 tensors of `elements` each.
fabric::Operation CostOfElementwise(std::int64_t elements, int reads, int writes);

struct MatMulShape {
  std::int64_t m = 0, k = 0, n = 0;
  bool transpose_a = false, transpose_b = false;
};

// One a kind of device. Arguments are as above, checked.
class Operations {
 public:
  virtual ~Operations() = default;
  virtual absl::Status MatMul(const MatMulShape& shape, const TensorView& a, const TensorView& b,
                              float beta, const TensorView& c) = 0;
  virtual absl::Status AddBias(const TensorView& x, const TensorView& bias, bool relu) = 0;
  virtual absl::Status ReluBackward(const TensorView& y, const TensorView& dy) = 0;
  virtual absl::Status AccumulateRowSums(const TensorView& x, const TensorView& out) = 0;
  virtual absl::StatusOr<LossSum> SoftmaxCrossEntropy(const TensorView& logits,
                                                      const TensorView& labels,
                                                      const TensorView& gradient) = 0;
  virtual absl::Status SgdUpdate(const TensorView& parameters, const TensorView& gradients,
                                 float scale, float learning_rate) = 0;
  virtual absl::Status MomentumUpdate(const TensorView& parameters, const TensorView& gradients,
                                      const TensorView& velocity, float scale, float learning_rate,
                                      float momentum) = 0;
  virtual absl::Status FillZero(const TensorView& x) = 0;
  virtual absl::Status CopyFromHost(const TensorView& host, const TensorView& x) = 0;
  virtual absl::Status CopyToHost(const TensorView& x, const TensorView& host) = 0;
};

}  // namespace ranklab::compute
