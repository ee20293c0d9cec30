#include "compute/operations.h"

#include "compute/device.h"
#include "core/check.h"

namespace ranklab::compute {
namespace {

// Host memory that no device counts is worked on as the CPU does, on the calling thread.
Operations& OperationsFor(const TensorView& view) {
  static const std::unique_ptr<Operations> host = MakeCpuOperations(1);
  return view.device == nullptr ? *host : view.device->operations();
}

bool IsFloating(const TensorView& view) { return view.dtype != DType::kInt32; }

bool IsMatrix(const TensorView& view) { return view.shape[2] == 1 && view.shape[3] == 1; }

void CheckMatrix(const TensorView& x) {
  RANKLAB_CHECK(IsFloating(x) && IsMatrix(x), "not a matrix of numbers: (%d, %d, %d, %d)",
                x.shape[0], x.shape[1], x.shape[2], x.shape[3]);
}

void CheckAlike(const TensorView& a, const TensorView& b) {
  RANKLAB_CHECK(IsFloating(a) && IsFloating(b));
  RANKLAB_CHECK(a.shape == b.shape, "(%d, %d) and (%d, %d)", a.shape[0], a.shape[1], b.shape[0],
                b.shape[1]);
  RANKLAB_CHECK(a.device == b.device, "tensors of two devices");
}

// `row` (n) goes with each row of `x` (rows, n).
void CheckRow(const TensorView& x, const TensorView& row) {
  CheckMatrix(x);
  RANKLAB_CHECK(IsFloating(row) && row.element_count() == x.shape[1], "%d elements for rows of %d",
                row.element_count(), x.shape[1]);
  RANKLAB_CHECK(x.device == row.device, "tensors of two devices");
}

void CheckOneDevice(std::initializer_list<const TensorView*> tensors) {
  for (const TensorView* tensor : tensors) {
    RANKLAB_CHECK(tensor->device == (*tensors.begin())->device, "tensors of two devices");
  }
}

void CheckEmbedding(const TensorView& tokens, const TensorView& table, const TensorView& positions,
                    const TensorView& out) {
  CheckMatrix(table);
  CheckMatrix(positions);
  CheckMatrix(out);
  RANKLAB_CHECK(tokens.dtype == DType::kInt32 && IsMatrix(tokens), "tokens are an int32 matrix");
  RANKLAB_CHECK(out.shape[0] == tokens.element_count() && out.shape[1] == table.shape[1] &&
                    positions.shape[1] == table.shape[1] && positions.shape[0] >= tokens.shape[1],
                "(%d, %d) tokens in (%d, %d) of tables (%d, %d) and (%d, %d)", tokens.shape[0],
                tokens.shape[1], out.shape[0], out.shape[1], table.shape[0], table.shape[1],
                positions.shape[0], positions.shape[1]);
  CheckOneDevice({&tokens, &table, &positions, &out});
}

void CheckStatistics(const TensorView& x, const TensorView& statistics) {
  CheckMatrix(statistics);
  RANKLAB_CHECK(statistics.dtype == DType::kFloat32 && statistics.shape[0] == x.shape[0] &&
                    statistics.shape[1] == 2,
                "(%d, %d) statistics of %d rows", statistics.shape[0], statistics.shape[1],
                x.shape[0]);
}

void CheckAttention(const TensorView& qkv, const TensorView& out, const TensorView& log_sums) {
  const auto& [samples, length, hidden, one] = out.shape;
  const std::int64_t heads = log_sums.shape[1];
  RANKLAB_CHECK(IsFloating(qkv) && IsFloating(out) && log_sums.dtype == DType::kFloat32);
  RANKLAB_CHECK(one == 1 && heads > 0 && hidden % heads == 0, "%d in %d heads", hidden, heads);
  RANKLAB_CHECK(qkv.shape == (std::array<std::int64_t, 4>{samples, length, 3 * hidden, 1}) &&
                    log_sums.shape == (std::array<std::int64_t, 4>{samples, heads, length, 1}),
                "attention over (%d, %d, %d) with (%d, %d, %d)", samples, length, hidden,
                qkv.shape[0], qkv.shape[1], qkv.shape[2]);
  CheckOneDevice({&qkv, &out, &log_sums});
}

void CheckMaster(const TensorView& parameters, std::initializer_list<const TensorView*> others) {
  RANKLAB_CHECK(parameters.dtype == DType::kFloat32);
  for (const TensorView* other : others) {
    RANKLAB_CHECK(other->dtype == DType::kFloat32);
    CheckAlike(parameters, *other);
  }
}

}  // namespace

absl::Status MatMul(const TensorView& a, Transpose transpose_a, const TensorView& b,
                    Transpose transpose_b, float beta, const TensorView& c) {
  CheckMatrix(a);
  CheckMatrix(b);
  CheckMatrix(c);
  RANKLAB_CHECK(a.device == c.device && b.device == c.device, "tensors of two devices");
  const bool flip_a = transpose_a == Transpose::kYes;
  const bool flip_b = transpose_b == Transpose::kYes;
  const MatMulShape shape{.m = c.shape[0],
                          .k = a.shape[flip_a ? 0 : 1],
                          .n = c.shape[1],
                          .transpose_a = flip_a,
                          .transpose_b = flip_b};
  RANKLAB_CHECK(a.shape[flip_a ? 1 : 0] == shape.m && b.shape[flip_b ? 1 : 0] == shape.k &&
                    b.shape[flip_b ? 0 : 1] == shape.n,
                "op(%d, %d) x op(%d, %d) is not (%d, %d)", a.shape[0], a.shape[1], b.shape[0],
                b.shape[1], c.shape[0], c.shape[1]);
  return OperationsFor(c).MatMul(shape, a, b, beta, c);
}

absl::Status AddBiasRelu(const TensorView& x, const TensorView& bias) {
  CheckRow(x, bias);
  return OperationsFor(x).AddBias(x, bias, /*relu=*/true);
}

absl::Status AddBias(const TensorView& x, const TensorView& bias) {
  CheckRow(x, bias);
  return OperationsFor(x).AddBias(x, bias, /*relu=*/false);
}

absl::Status ReluBackward(const TensorView& y, const TensorView& dy) {
  CheckAlike(y, dy);
  return OperationsFor(y).ReluBackward(y, dy);
}

absl::Status AccumulateRowSums(const TensorView& x, const TensorView& out) {
  CheckRow(x, out);
  return OperationsFor(x).AccumulateRowSums(x, out);
}

absl::StatusOr<LossSum> SoftmaxCrossEntropy(const TensorView& logits, const TensorView& labels,
                                            float scale, const TensorView& gradient) {
  CheckMatrix(logits);
  CheckAlike(logits, gradient);
  RANKLAB_CHECK(labels.dtype == DType::kInt32 && labels.element_count() == logits.shape[0],
                "%d labels for %d rows", labels.element_count(), logits.shape[0]);
  RANKLAB_CHECK(logits.device == labels.device, "tensors of two devices");
  RANKLAB_CHECK(logits.shape[1] > 0, "no classes");
  return OperationsFor(logits).SoftmaxCrossEntropy(logits, labels, scale, gradient);
}

absl::Status EmbedTokens(const TensorView& tokens, const TensorView& table,
                         const TensorView& positions, const TensorView& out) {
  CheckEmbedding(tokens, table, positions, out);
  return OperationsFor(out).EmbedTokens(tokens, table, positions, out);
}

absl::Status EmbedTokensBackward(const TensorView& tokens, const TensorView& dout,
                                 const TensorView& dtable, const TensorView& dpositions) {
  CheckEmbedding(tokens, dtable, dpositions, dout);
  return OperationsFor(dout).EmbedTokensBackward(tokens, dout, dtable, dpositions);
}

absl::Status LayerNorm(const TensorView& x, const TensorView& gain, const TensorView& bias,
                       const TensorView& y, const TensorView& statistics) {
  CheckRow(x, gain);
  CheckRow(x, bias);
  CheckAlike(x, y);
  CheckStatistics(x, statistics);
  return OperationsFor(x).LayerNorm(x, gain, bias, y, statistics);
}

absl::Status LayerNormBackward(const TensorView& x, const TensorView& gain,
                               const TensorView& statistics, const TensorView& dy,
                               const LayerNormGradients& gradients) {
  CheckRow(x, gain);
  CheckRow(x, gradients.dgain);
  CheckRow(x, gradients.dbias);
  CheckAlike(x, dy);
  CheckAlike(x, gradients.dx);
  CheckStatistics(x, statistics);
  return OperationsFor(x).LayerNormBackward(x, gain, statistics, dy, gradients);
}

absl::Status AddBiasGelu(const TensorView& x, const TensorView& bias, const TensorView& y) {
  CheckRow(x, bias);
  CheckAlike(x, y);
  return OperationsFor(x).AddBiasGelu(x, bias, y);
}

absl::Status GeluBackward(const TensorView& x, const TensorView& dy) {
  CheckAlike(x, dy);
  return OperationsFor(x).GeluBackward(x, dy);
}

absl::Status AddBiasResidual(const TensorView& x, const TensorView& bias,
                             const TensorView& residual) {
  CheckRow(x, bias);
  CheckAlike(x, residual);
  return OperationsFor(x).AddBiasResidual(x, bias, residual);
}

absl::Status CausalAttention(const TensorView& qkv, const TensorView& out,
                             const TensorView& log_sums) {
  CheckAttention(qkv, out, log_sums);
  return OperationsFor(out).CausalAttention(qkv, out, log_sums);
}

absl::Status CausalAttentionBackward(const TensorView& qkv, const TensorView& out,
                                     const TensorView& log_sums, const TensorView& dout,
                                     const TensorView& dqkv) {
  CheckAttention(qkv, out, log_sums);
  CheckAlike(out, dout);
  CheckAlike(qkv, dqkv);
  return OperationsFor(out).CausalAttentionBackward(qkv, out, log_sums, dout, dqkv);
}

absl::StatusOr<double> SumOfSquares(const TensorView& x) {
  RANKLAB_CHECK(x.dtype == DType::kFloat32);
  return OperationsFor(x).SumOfSquares(x);
}

absl::Status AdamWUpdate(const TensorView& parameters, const TensorView& gradients,
                         const TensorView& m, const TensorView& v, float scale,
                         const AdamWStep& step) {
  CheckMaster(parameters, {&gradients, &m, &v});
  return OperationsFor(parameters).AdamWUpdate(parameters, gradients, m, v, scale, step);
}

absl::Status SgdUpdate(const TensorView& parameters, const TensorView& gradients, float scale,
                       float learning_rate) {
  CheckMaster(parameters, {&gradients});
  return OperationsFor(parameters).SgdUpdate(parameters, gradients, scale, learning_rate);
}

absl::Status MomentumUpdate(const TensorView& parameters, const TensorView& gradients,
                            const TensorView& velocity, float scale, float learning_rate,
                            float momentum) {
  CheckMaster(parameters, {&gradients, &velocity});
  return OperationsFor(parameters)
      .MomentumUpdate(parameters, gradients, velocity, scale, learning_rate, momentum);
}

absl::Status Convert(const TensorView& x, const TensorView& y) {
  CheckAlike(x, y);
  return OperationsFor(x).Convert(x, y);
}

absl::Status FillZero(const TensorView& x) { return OperationsFor(x).FillZero(x); }

absl::Status CopyFromHost(const TensorView& host, const TensorView& x) {
  RANKLAB_CHECK(host.device == nullptr && host.byte_count() == x.byte_count(), "%d bytes to %d",
                host.byte_count(), x.byte_count());
  return OperationsFor(x).CopyFromHost(host, x);
}

absl::Status CopyToHost(const TensorView& x, const TensorView& host) {
  RANKLAB_CHECK(host.device == nullptr && host.byte_count() == x.byte_count(), "%d bytes to %d",
                x.byte_count(), host.byte_count());
  return OperationsFor(x).CopyToHost(x, host);
}

fabric::Operation CostOfMatMul(std::int64_t m, std::int64_t k, std::int64_t n) {
  const auto rows = static_cast<double>(m);
  const auto depth = static_cast<double>(k);
  const auto columns = static_cast<double>(n);
  return {.flops = 2.0 * rows * depth * columns,
          .bytes = 4.0 * (rows * depth + depth * columns + rows * columns)};
}

fabric::Operation CostOfElementwise(std::int64_t elements, int reads, int writes) {
  const auto count = static_cast<double>(elements);
  return {.flops = count, .bytes = 4.0 * count * (reads + writes)};
}

}  // namespace ranklab::compute
