// Always optimised, whatever the build type (see CMakeLists.txt): labs are also run from debug
// builds.
#include <algorithm>
#include <cmath>
#include <vector>

#include <dnnl.h>
#include <omp.h>

#include "compute/device.h"
#include "compute/operations.h"
#include "compute/thread_team.h"
#include "core/check.h"
#include "core/status.h"

namespace ranklab::compute {
namespace {

struct RowLoss {
  double loss = 0;
  bool correct = false;
};

// Softmax shifted by its largest logit, so that no exponential overflows. `gradient` may not be
// `logits`.
RowLoss CrossEntropyOfRow(std::span<const float> logits, std::int32_t label,
                          std::span<float> gradient) {
  const auto largest = std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (std::size_t c = 0; c < logits.size(); ++c) {
    gradient[c] = std::exp(logits[c] - *largest);
    sum += gradient[c];
  }
  const auto inverse = static_cast<float>(1.0 / sum);
  for (float& g : gradient) {
    g *= inverse;
  }
  gradient[label] -= 1.0F;
  const double shifted = static_cast<double>(logits[label]) - *largest;
  return {.loss = std::log(sum) - shifted, .correct = largest - logits.begin() == label};
}

// Multiply-adds below which waking a thread takes longer than they do: about 20 us.
constexpr std::int64_t kLeastWorkOfThread = 1 << 20;

// One of `parts` slices of c, along its longer side.
dnnl_status_t MultiplyPart(const MatMulShape& shape, const TensorView& a, const TensorView& b,
                           float beta, const TensorView& c, int part, int parts) {
  // oneDNN asks its OpenMP runtime, which keeps this number for each thread. With 1 it makes no
  // threads of its own; those would spin when idle.
  omp_set_num_threads(1);
  const bool by_rows = shape.m >= shape.n;
  const std::int64_t length = by_rows ? shape.m : shape.n;
  const std::int64_t first = length * part / parts;
  const std::int64_t count = length * (part + 1) / parts - first;
  if (count == 0) {
    return dnnl_success;
  }
  const float* left = HostValues<float>(a).data();
  const float* right = HostValues<float>(b).data();
  float* out = HostValues<float>(c).data();
  if (by_rows) {
    left += first * (shape.transpose_a ? 1 : a.shape[1]);
    out += first * c.shape[1];
  } else {
    right += first * (shape.transpose_b ? b.shape[1] : 1);
    out += first;
  }
  // As fast as a cached matmul primitive (both are gemm:jit here), without one to keep.
  return dnnl_sgemm(shape.transpose_a ? 'T' : 'N', shape.transpose_b ? 'T' : 'N',
                    by_rows ? count : shape.m, by_rows ? shape.n : count, shape.k, 1.0F, left,
                    a.shape[1], right, b.shape[1], beta, out, c.shape[1]);
}

absl::Status StatusOf(dnnl_status_t result, const MatMulShape& shape) {
  if (result != dnnl_success) {
    return Internal("oneDNN's sgemm of (%d, %d) x (%d, %d) failed with status %d", shape.m, shape.k,
                    shape.k, shape.n, static_cast<int>(result));
  }
  return absl::OkStatus();
}

class CpuOperations final : public Operations {
 public:
  explicit CpuOperations(int threads) : team_(threads) {}

  absl::Status MatMul(const MatMulShape& shape, const TensorView& a, const TensorView& b,
                      float beta, const TensorView& c) override {
    if (shape.m == 0 || shape.n == 0) {
      return absl::OkStatus();
    }
    RANKLAB_CHECK(shape.k > 0, "a product over nothing");
    const std::int64_t work = shape.m * shape.k * shape.n;
    if (team_.size() == 1 || work < team_.size() * kLeastWorkOfThread) {
      return StatusOf(MultiplyPart(shape, a, b, beta, c, 0, 1), shape);
    }
    std::vector<dnnl_status_t> results(team_.size(), dnnl_success);
    team_.Run(
        [&](int part) { results[part] = MultiplyPart(shape, a, b, beta, c, part, team_.size()); });
    for (const dnnl_status_t result : results) {
      RETURN_IF_ERROR(StatusOf(result, shape));
    }
    return absl::OkStatus();
  }

  absl::Status AddBias(const TensorView& x, const TensorView& bias, bool relu) override {
    const std::int64_t n = x.shape[1];
    const float* __restrict add = HostValues<float>(bias).data();
    for (std::int64_t row = 0; row < x.shape[0]; ++row) {
      float* __restrict values = HostValues<float>(x).data() + row * n;
      if (relu) {
        for (std::int64_t i = 0; i < n; ++i) {
          const float sum = values[i] + add[i];
          values[i] = sum < 0.0F ? 0.0F : sum;  // keeps NaN, so that divergence shows
        }
      } else {
        for (std::int64_t i = 0; i < n; ++i) {
          values[i] += add[i];
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReluBackward(const TensorView& y, const TensorView& dy) override {
    const float* __restrict output = HostValues<float>(y).data();
    float* __restrict gradient = HostValues<float>(dy).data();
    const std::int64_t count = y.element_count();
    for (std::int64_t i = 0; i < count; ++i) {
      gradient[i] = output[i] > 0.0F ? gradient[i] : 0.0F;
    }
    return absl::OkStatus();
  }

  absl::Status AccumulateRowSums(const TensorView& x, const TensorView& out) override {
    const std::int64_t n = x.shape[1];
    float* __restrict sums = HostValues<float>(out).data();
    for (std::int64_t row = 0; row < x.shape[0]; ++row) {
      const float* __restrict values = HostValues<float>(x).data() + row * n;
      for (std::int64_t i = 0; i < n; ++i) {
        sums[i] += values[i];
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<LossSum> SoftmaxCrossEntropy(const TensorView& logits, const TensorView& labels,
                                              const TensorView& gradient) override {
    const std::int64_t classes = logits.shape[1];
    const std::span<const float> scores = HostValues<float>(logits);
    const std::span<float> out = HostValues<float>(gradient);
    const std::span<const std::int32_t> label = HostValues<std::int32_t>(labels);
    LossSum sum;
    for (std::int64_t row = 0; row < logits.shape[0]; ++row) {
      if (label[row] < 0 || label[row] >= classes) {
        return InvalidArgument("label %d of row %d is not one of %d classes", label[row], row,
                               classes);
      }
      const RowLoss loss = CrossEntropyOfRow(scores.subspan(row * classes, classes), label[row],
                                             out.subspan(row * classes, classes));
      sum.loss += loss.loss;
      sum.correct += loss.correct ? 1 : 0;
    }
    return sum;
  }

  absl::Status SgdUpdate(const TensorView& parameters, const TensorView& gradients, float scale,
                         float learning_rate) override {
    float* __restrict p = HostValues<float>(parameters).data();
    const float* __restrict g = HostValues<float>(gradients).data();
    const std::int64_t count = parameters.element_count();
    for (std::int64_t i = 0; i < count; ++i) {
      p[i] -= learning_rate * (scale * g[i]);
    }
    return absl::OkStatus();
  }

  absl::Status MomentumUpdate(const TensorView& parameters, const TensorView& gradients,
                              const TensorView& velocity, float scale, float learning_rate,
                              float momentum) override {
    float* __restrict p = HostValues<float>(parameters).data();
    const float* __restrict g = HostValues<float>(gradients).data();
    float* __restrict v = HostValues<float>(velocity).data();
    const std::int64_t count = parameters.element_count();
    for (std::int64_t i = 0; i < count; ++i) {
      v[i] = momentum * v[i] + scale * g[i];
      p[i] -= learning_rate * v[i];
    }
    return absl::OkStatus();
  }

  absl::Status FillZero(const TensorView& x) override {
    std::fill_n(x.data, x.byte_count(), std::byte{0});
    return absl::OkStatus();
  }

  absl::Status CopyFromHost(const TensorView& host, const TensorView& x) override {
    std::copy_n(host.data, x.byte_count(), x.data);
    return absl::OkStatus();
  }

  absl::Status CopyToHost(const TensorView& x, const TensorView& host) override {
    std::copy_n(x.data, x.byte_count(), host.data);
    return absl::OkStatus();
  }

 private:
  ThreadTeam team_;
};

}  // namespace

std::unique_ptr<Operations> MakeCpuOperations(int threads) {
  return std::make_unique<CpuOperations>(threads);
}

}  // namespace ranklab::compute
