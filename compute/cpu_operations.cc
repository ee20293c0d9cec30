#include <algorithm>
#include <cmath>
#include <vector>

#include <absl/functional/function_ref.h>

#include "compute/cpu_attention.h"
#include "compute/cpu_gemm.h"
#include "compute/cpu_loops.h"
#include "compute/device.h"
#include "compute/operations.h"
#include "compute/thread_team.h"
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
  const loops::Exponentials exponentials =
      loops::ExponentialsRow(logits.data(), gradient.data(), std::ssize(logits));
  loops::Scale(gradient.data(), 1.0F / exponentials.sum, std::ssize(gradient));
  gradient[label] -= 1.0F;
  const double shifted = static_cast<double>(logits[label]) - exponentials.largest;
  const auto first_largest = std::find(logits.begin(), logits.end(), exponentials.largest);
  return {.loss = std::log(static_cast<double>(exponentials.sum)) - shifted,
          .correct = first_largest - logits.begin() == label};
}

// Multiply-adds below which waking a thread takes longer than they do: about 20 us.
constexpr std::int64_t kLeastWorkOfThread = 1 << 20;

// One of `parts` slices of c, along its longer side.
absl::Status MultiplyPart(const MatMulShape& shape, const TensorView& a, const TensorView& b,
                          float beta, const TensorView& c, int part, int parts) {
  const bool by_rows = shape.m >= shape.n;
  const std::int64_t length = by_rows ? shape.m : shape.n;
  const std::int64_t first = length * part / parts;
  const std::int64_t count = length * (part + 1) / parts - first;
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
  return Gemm({.m = by_rows ? count : shape.m, .k = shape.k, .n = by_rows ? shape.n : count},
              {.data = left, .stride = a.shape[1], .transpose = shape.transpose_a},
              {.data = right, .stride = b.shape[1], .transpose = shape.transpose_b}, beta, out,
              c.shape[1]);
}

class CpuOperations final : public Operations {
 public:
  explicit CpuOperations(int threads) : team_(threads) {}

  absl::Status MatMul(const MatMulShape& shape, const TensorView& a, const TensorView& b,
                      float beta, const TensorView& c) override {
    return InParts(shape.m * shape.k * shape.n, [&](int part, int parts) {
      return MultiplyPart(shape, a, b, beta, c, part, parts);
    });
  }

  absl::Status AddBias(const TensorView& x, const TensorView& bias, bool relu) override {
    loops::AddBias(Floats(x), Floats(bias), x.shape[0], x.shape[1], relu);
    return absl::OkStatus();
  }

  absl::Status AddBiasGelu(const TensorView& x, const TensorView& bias,
                           const TensorView& y) override {
    loops::AddBiasGelu(Floats(x), Floats(bias), Floats(y), x.shape[0], x.shape[1]);
    return absl::OkStatus();
  }

  absl::Status AddBiasResidual(const TensorView& x, const TensorView& bias,
                               const TensorView& residual) override {
    loops::AddBiasResidual(Floats(x), Floats(bias), Floats(residual), x.shape[0], x.shape[1]);
    return absl::OkStatus();
  }

  absl::Status ReluBackward(const TensorView& y, const TensorView& dy) override {
    loops::ReluBackward(Floats(y), Floats(dy), y.element_count());
    return absl::OkStatus();
  }

  absl::Status GeluBackward(const TensorView& x, const TensorView& dy) override {
    loops::GeluBackward(Floats(x), Floats(dy), x.element_count());
    return absl::OkStatus();
  }

  absl::Status AccumulateRowSums(const TensorView& x, const TensorView& out) override {
    loops::AccumulateRowSums(Floats(out), Floats(x), x.shape[0], x.shape[1]);
    return absl::OkStatus();
  }

  absl::Status EmbedTokens(const TensorView& tokens, const TensorView& table,
                           const TensorView& positions, const TensorView& out) override {
    const std::int64_t hidden = table.shape[1];
    const std::int64_t length = tokens.shape[1];
    std::int64_t row = 0;
    for (const std::int32_t token : HostValues<std::int32_t>(tokens)) {
      if (token < 0 || token >= table.shape[0]) {
        return InvalidArgument("token %d of sample %d is not one of %d", token, row / length,
                               table.shape[0]);
      }
      loops::Add(Floats(out) + row * hidden, Floats(table) + token * hidden,
                 Floats(positions) + row % length * hidden, hidden);
      ++row;
    }
    return absl::OkStatus();
  }

  absl::Status EmbedTokensBackward(const TensorView& tokens, const TensorView& dout,
                                   const TensorView& dtable,
                                   const TensorView& dpositions) override {
    const std::int64_t hidden = dtable.shape[1];
    const std::int64_t length = tokens.shape[1];
    const float* source = Floats(dout);
    std::int64_t row = 0;
    for (const std::int32_t token : HostValues<std::int32_t>(tokens)) {
      loops::AddTo(Floats(dtable) + token * hidden, source + row * hidden, hidden);
      loops::AddTo(Floats(dpositions) + row % length * hidden, source + row * hidden, hidden);
      ++row;
    }
    return absl::OkStatus();
  }

  absl::Status LayerNorm(const TensorView& x, const TensorView& gain, const TensorView& bias,
                         const TensorView& y, const TensorView& statistics) override {
    const std::int64_t n = x.shape[1];
    for (std::int64_t row = 0; row < x.shape[0]; ++row) {
      loops::LayerNormRow(Floats(x) + row * n, Floats(gain), Floats(bias), Floats(y) + row * n,
                          Floats(statistics) + row * 2, n);
    }
    return absl::OkStatus();
  }

  absl::Status LayerNormBackward(const TensorView& x, const TensorView& gain,
                                 const TensorView& statistics, const TensorView& dy,
                                 const LayerNormGradients& gradients) override {
    const std::int64_t n = x.shape[1];
    for (std::int64_t row = 0; row < x.shape[0]; ++row) {
      loops::LayerNormBackwardRow(Floats(x) + row * n, Floats(gain), Floats(statistics) + row * 2,
                                  Floats(dy) + row * n,
                                  {.dx = Floats(gradients.dx) + row * n,
                                   .beta = gradients.beta,
                                   .dgain = Floats(gradients.dgain),
                                   .dbias = Floats(gradients.dbias)},
                                  n);
    }
    return absl::OkStatus();
  }

  absl::Status CausalAttention(const TensorView& qkv, const TensorView& out,
                               const TensorView& log_sums) override {
    const AttentionShape shape = ShapeOf(out, log_sums);
    return OverHeads(shape, out.shape[0],
                     [&](std::int64_t sample, std::int64_t head, std::vector<float>& scratch) {
                       return AttentionOfHead(
                           shape,
                           PlaceOf(shape, sample, head, Floats(qkv), Floats(out), Floats(log_sums)),
                           scratch);
                     });
  }

  absl::Status CausalAttentionBackward(const TensorView& qkv, const TensorView& out,
                                       const TensorView& log_sums, const TensorView& dout,
                                       const TensorView& dqkv) override {
    const AttentionShape shape = ShapeOf(out, log_sums);
    float* sums = Floats(log_sums);
    return OverHeads(shape, out.shape[0],
                     [&](std::int64_t sample, std::int64_t head, std::vector<float>& scratch) {
                       return AttentionBackwardOfHead(
                           shape, PlaceOf(shape, sample, head, Floats(qkv), Floats(out), sums),
                           PlaceOf(shape, sample, head, Floats(dqkv), Floats(dout), sums), scratch);
                     });
  }

  absl::StatusOr<LossSum> SoftmaxCrossEntropy(const TensorView& logits, const TensorView& labels,
                                              const TensorView& gradient) override {
    const std::int64_t classes = logits.shape[1];
    const std::span<const float> scores = HostValues<float>(logits);
    const std::span<float> out = HostValues<float>(gradient);
    const std::span<const std::int32_t> label = HostValues<std::int32_t>(labels);
    LossSum sum;
    for (std::int64_t row = 0; row < logits.shape[0]; ++row) {
      const std::span<float> of_row = out.subspan(row * classes, classes);
      if (label[row] == kNoTarget) {
        std::fill(of_row.begin(), of_row.end(), 0.0F);
        continue;
      }
      if (label[row] < 0 || label[row] >= classes) {
        return InvalidArgument("label %d of row %d is not one of %d classes", label[row], row,
                               classes);
      }
      const RowLoss loss =
          CrossEntropyOfRow(scores.subspan(row * classes, classes), label[row], of_row);
      sum.loss += loss.loss;
      sum.correct += loss.correct ? 1 : 0;
      ++sum.targets;
    }
    return sum;
  }

  absl::StatusOr<double> SumOfSquares(const TensorView& x) override {
    return loops::SumOfSquares(Floats(x), x.element_count());
  }

  absl::Status SgdUpdate(const TensorView& parameters, const TensorView& gradients, float scale,
                         float learning_rate) override {
    loops::SgdUpdate(Floats(parameters), Floats(gradients), parameters.element_count(), scale,
                     learning_rate);
    return absl::OkStatus();
  }

  absl::Status MomentumUpdate(const TensorView& parameters, const TensorView& gradients,
                              const TensorView& velocity, float scale, float learning_rate,
                              float momentum) override {
    loops::MomentumUpdate(Floats(parameters), Floats(gradients), Floats(velocity),
                          parameters.element_count(), scale, learning_rate, momentum);
    return absl::OkStatus();
  }

  absl::Status AdamWUpdate(const TensorView& parameters, const TensorView& gradients,
                           const TensorView& m, const TensorView& v, float scale,
                           const AdamWStep& step) override {
    loops::AdamWUpdate(Floats(parameters), Floats(gradients), Floats(m), Floats(v),
                       parameters.element_count(), scale, step);
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
  static float* Floats(const TensorView& view) { return HostValues<float>(view).data(); }

  static AttentionShape ShapeOf(const TensorView& out, const TensorView& log_sums) {
    return {.length = out.shape[1], .hidden = out.shape[2], .heads = log_sums.shape[1]};
  }

  // work(part, parts) on each thread of the team, or on this one alone when `multiply_adds` are
  // few.
  absl::Status InParts(std::int64_t multiply_adds,
                       absl::FunctionRef<absl::Status(int part, int parts)> work) {
    const int parts = team_.size();
    if (parts == 1 || multiply_adds < parts * kLeastWorkOfThread) {
      return work(0, 1);
    }
    std::vector<absl::Status> results(static_cast<std::size_t>(parts));
    team_.Run([&](int part) { results[static_cast<std::size_t>(part)] = work(part, parts); });
    for (const absl::Status& result : results) {
      RETURN_IF_ERROR(result);
    }
    return absl::OkStatus();
  }

  // Every head of every sample, in any order.
  absl::Status OverHeads(const AttentionShape& shape, std::int64_t samples,
                         absl::FunctionRef<absl::Status(std::int64_t sample, std::int64_t head,
                                                        std::vector<float>& scratch)>
                             work) {
    const std::int64_t all = samples * shape.heads;
    const std::int64_t multiply_adds = samples * shape.length * shape.length * shape.hidden;
    return InParts(multiply_adds, [&](int part, int parts) {
      std::vector<float> scratch;  // tiles of scores
      for (std::int64_t i = all * part / parts; i < all * (part + 1) / parts; ++i) {
        RETURN_IF_ERROR(work(i / shape.heads, i % shape.heads, scratch));
      }
      return absl::OkStatus();
    });
  }

  ThreadTeam team_;
};

}  // namespace

std::unique_ptr<Operations> MakeCpuOperations(int threads) {
  return std::make_unique<CpuOperations>(threads);
}

}  // namespace ranklab::compute
