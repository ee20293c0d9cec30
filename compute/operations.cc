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

bool IsMatrix(const TensorView& view) { return view.shape[2] == 1 && view.shape[3] == 1; }

void CheckMatrix(const TensorView& x) {
  RANKLAB_CHECK(x.dtype == DType::kFloat32 && IsMatrix(x), "not a float32 matrix: (%d, %d, %d, %d)",
                x.shape[0], x.shape[1], x.shape[2], x.shape[3]);
}

void CheckAlike(const TensorView& a, const TensorView& b) {
  RANKLAB_CHECK(a.dtype == DType::kFloat32 && b.dtype == DType::kFloat32);
  RANKLAB_CHECK(a.shape == b.shape, "(%d, %d) and (%d, %d)", a.shape[0], a.shape[1], b.shape[0],
                b.shape[1]);
  RANKLAB_CHECK(a.device == b.device, "tensors of two devices");
}

// `row` (n) goes with each row of `x` (rows, n).
void CheckRow(const TensorView& x, const TensorView& row) {
  CheckMatrix(x);
  RANKLAB_CHECK(row.dtype == DType::kFloat32 && row.element_count() == x.shape[1],
                "%d elements for rows of %d", row.element_count(), x.shape[1]);
  RANKLAB_CHECK(x.device == row.device, "tensors of two devices");
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
                                            const TensorView& gradient) {
  CheckMatrix(logits);
  CheckAlike(logits, gradient);
  RANKLAB_CHECK(labels.dtype == DType::kInt32 && labels.element_count() == logits.shape[0],
                "%d labels for %d rows", labels.element_count(), logits.shape[0]);
  RANKLAB_CHECK(logits.device == labels.device, "tensors of two devices");
  RANKLAB_CHECK(logits.shape[1] > 0, "no classes");
  return OperationsFor(logits).SoftmaxCrossEntropy(logits, labels, gradient);
}

absl::Status SgdUpdate(const TensorView& parameters, const TensorView& gradients, float scale,
                       float learning_rate) {
  CheckAlike(parameters, gradients);
  return OperationsFor(parameters).SgdUpdate(parameters, gradients, scale, learning_rate);
}

absl::Status MomentumUpdate(const TensorView& parameters, const TensorView& gradients,
                            const TensorView& velocity, float scale, float learning_rate,
                            float momentum) {
  CheckAlike(parameters, gradients);
  CheckAlike(parameters, velocity);
  return OperationsFor(parameters)
      .MomentumUpdate(parameters, gradients, velocity, scale, learning_rate, momentum);
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
