// The operations of a model, over tensors of one device. Row-major; shapes at every argument. Each
// is told what it costs by CostOf*, which the modelled time is made from.
#pragma once

#include <absl/status/status.h>

#include "compute/tensor.h"
#include "fabric/device_model.h"

namespace ranklab::compute {

enum class Transpose : std::uint8_t { kNo, kYes };

// c (m, n) = op(a) (m, k) x op(b) (k, n) + beta c. Float32.
absl::Status MatMul(TensorView a, Transpose transpose_a, TensorView b, Transpose transpose_b,
                    float beta, TensorView c);

// y (rows, n) = max(0, x + bias) or x + bias, in place on x; bias (n).
absl::Status AddBiasRelu(TensorView x, TensorView bias);
absl::Status AddBias(TensorView x, TensorView bias);

// dx = dy where y > 0, else 0; in place on dy. y (rows, n) is the output of the ReLU.
absl::Status ReluBackward(TensorView y, TensorView dy);

// out (n) += sum over rows of x (rows, n).
absl::Status AccumulateRowSums(TensorView x, TensorView out);

// logits (rows, classes), labels int32 (rows). Writes the gradient of the *sum* of losses over the
// logits and returns the sum of losses and the rows whose largest logit is the label.
struct LossSum {
  double loss = 0;
  std::int64_t correct = 0;
};
absl::StatusOr<LossSum> SoftmaxCrossEntropy(TensorView logits, TensorView labels,
                                            TensorView gradient);

fabric::Operation CostOfMatMul(std::int64_t m, std::int64_t k, std::int64_t n);
fabric::Operation CostOfElementwise(std::int64_t elements, int reads, int writes);

}  // namespace ranklab::compute
