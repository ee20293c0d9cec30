// The operations of a model, over tensors of one device. Row-major; shapes at every argument. The
// free functions check shapes, dtypes and devices once and call the device's Operations; a new kind
// of device implements that interface and nothing else changes. CostOf* say what one costs, which
// the modelled time is made from.
#pragma once

#include <cstdint>
#include <span>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "compute/operation_terms.h"
#include "compute/tensor.h"
#include "fabric/device_model.h"

namespace ranklab::compute {

enum class Transpose : std::uint8_t { kNo, kYes };

// All functions. Requires: float32 where not said otherwise, shapes as given, all tensors on one
// device, nothing overlapping but what is in place. Weights, activations and their gradients may
// also be bfloat16 or float16, then sums are accumulated in float32 and rounded once at the end.
// Errors: Internal, the device's library failed.

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

// logits (rows, classes), labels int32 (rows). Writes the gradient of scale x the *sum* of losses
// over the logits and returns the sum of losses, in double precision, and the rows whose first
// largest logit is the label. A row with the label kNoTarget counts nowhere, and its gradient is 0.
// Waits for the device. Errors: InvalidArgument, a label that is no class.
struct LossSum {
  double loss = 0;
  std::int64_t correct = 0;
  std::int64_t targets = 0;  // rows that count
};
absl::StatusOr<LossSum> SoftmaxCrossEntropy(const TensorView& logits, const TensorView& labels,
                                            float scale, const TensorView& gradient);

// tokens int32 (samples, length), table (vocabulary, hidden), positions (context, hidden) with
// context >= length, out (samples length, hidden): table[token] + positions[place in the sample].
// Waits for the device. Errors: InvalidArgument, a token outside the table.
absl::Status EmbedTokens(const TensorView& tokens, const TensorView& table,
                         const TensorView& positions, const TensorView& out);
// Adds dout (samples length, hidden) to the rows that it came from. Requires: tokens that
// EmbedTokens took.
absl::Status EmbedTokensBackward(const TensorView& tokens, const TensorView& dout,
                                 const TensorView& dtable, const TensorView& dpositions);

// y = (x - mean) / sqrt(variance + kLayerNormEpsilon) x gain + bias over each row of x (rows, n);
// gain, bias (n). statistics (rows, 2): the mean and the reciprocal of the root, for the backward
// pass. Source: Ba, Kiros and Hinton, "Layer normalization", 2016.
absl::Status LayerNorm(const TensorView& x, const TensorView& gain, const TensorView& bias,
                       const TensorView& y, const TensorView& statistics);
// dx (rows, n) becomes the gradient of x + beta dx: with beta 1 it joins what flows around the
// block. dgain and dbias (n) are added to.
struct LayerNormGradients {
  TensorView dx;
  float beta = 0;
  TensorView dgain, dbias;
};
absl::Status LayerNormBackward(const TensorView& x, const TensorView& gain,
                               const TensorView& statistics, const TensorView& dy,
                               const LayerNormGradients& gradients);

// x (rows, n) becomes x + bias, y = GELU(x), its approximation by tanh; bias (n). Source: Hendrycks
// and Gimpel, "Gaussian error linear units", 2016.
absl::Status AddBiasGelu(const TensorView& x, const TensorView& bias, const TensorView& y);
// dy becomes dy x GELU'(x). Both (rows, n).
absl::Status GeluBackward(const TensorView& x, const TensorView& dy);

// x (rows, n) becomes x + bias + residual; bias (n), residual (rows, n).
absl::Status AddBiasResidual(const TensorView& x, const TensorView& bias,
                             const TensorView& residual);

// Softmax attention in which a position sees itself and what came before it. qkv (samples, length,
// 3 hidden): queries, keys, values, each cut into heads; out (samples, length, hidden); log_sums
// (samples, heads, length): log of the softmax's denominator, from which the backward pass makes
// the weights again, so that no (length, length) matrix is kept. Scores are divided by the root of
// hidden / heads. Source: Vaswani et al., "Attention is all you need", 2017; Dao et al.,
// "FlashAttention", 2022, for the backward pass.
absl::Status CausalAttention(const TensorView& qkv, const TensorView& out,
                             const TensorView& log_sums);
absl::Status CausalAttentionBackward(const TensorView& qkv, const TensorView& out,
                                     const TensorView& log_sums, const TensorView& dout,
                                     const TensorView& dqkv);

// The sum of squares over x, in double precision. Waits for the device.
absl::StatusOr<double> SumOfSquares(const TensorView& x);

// With g = scale x gradient: parameters -= learning_rate x g. All (n).
absl::Status SgdUpdate(const TensorView& parameters, const TensorView& gradients, float scale,
                       float learning_rate);

// velocity = momentum x velocity + g; parameters -= learning_rate x velocity. All (n).
absl::Status MomentumUpdate(const TensorView& parameters, const TensorView& gradients,
                            const TensorView& velocity, float scale, float learning_rate,
                            float momentum);

// With g = scale x gradient: m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; then
// p = p (1 - decay) - rate (m / correction1) / (sqrt(v / correction2) + epsilon). All (n). Source:
// Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019.
absl::Status AdamWUpdate(const TensorView& parameters, const TensorView& gradients,
                         const TensorView& m, const TensorView& v, float scale,
                         const AdamWStep& step);

// y = x, rounded to nearest even where y's dtype is narrower. Equal shapes, floating dtypes.
absl::Status Convert(const TensorView& x, const TensorView& y);

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
                                                      const TensorView& labels, float scale,
                                                      const TensorView& gradient) = 0;
  virtual absl::Status SgdUpdate(const TensorView& parameters, const TensorView& gradients,
                                 float scale, float learning_rate) = 0;
  virtual absl::Status MomentumUpdate(const TensorView& parameters, const TensorView& gradients,
                                      const TensorView& velocity, float scale, float learning_rate,
                                      float momentum) = 0;
  virtual absl::Status EmbedTokens(const TensorView& tokens, const TensorView& table,
                                   const TensorView& positions, const TensorView& out) = 0;
  virtual absl::Status EmbedTokensBackward(const TensorView& tokens, const TensorView& dout,
                                           const TensorView& dtable,
                                           const TensorView& dpositions) = 0;
  virtual absl::Status LayerNorm(const TensorView& x, const TensorView& gain,
                                 const TensorView& bias, const TensorView& y,
                                 const TensorView& statistics) = 0;
  virtual absl::Status LayerNormBackward(const TensorView& x, const TensorView& gain,
                                         const TensorView& statistics, const TensorView& dy,
                                         const LayerNormGradients& gradients) = 0;
  virtual absl::Status AddBiasGelu(const TensorView& x, const TensorView& bias,
                                   const TensorView& y) = 0;
  virtual absl::Status GeluBackward(const TensorView& x, const TensorView& dy) = 0;
  virtual absl::Status AddBiasResidual(const TensorView& x, const TensorView& bias,
                                       const TensorView& residual) = 0;
  virtual absl::Status CausalAttention(const TensorView& qkv, const TensorView& out,
                                       const TensorView& log_sums) = 0;
  virtual absl::Status CausalAttentionBackward(const TensorView& qkv, const TensorView& out,
                                               const TensorView& log_sums, const TensorView& dout,
                                               const TensorView& dqkv) = 0;
  virtual absl::StatusOr<double> SumOfSquares(const TensorView& x) = 0;
  virtual absl::Status AdamWUpdate(const TensorView& parameters, const TensorView& gradients,
                                   const TensorView& m, const TensorView& v, float scale,
                                   const AdamWStep& step) = 0;
  virtual absl::Status Convert(const TensorView& x, const TensorView& y) = 0;
  virtual absl::Status FillZero(const TensorView& x) = 0;
  virtual absl::Status CopyFromHost(const TensorView& host, const TensorView& x) = 0;
  virtual absl::Status CopyToHost(const TensorView& x, const TensorView& host) = 0;
};

}  // namespace ranklab::compute
