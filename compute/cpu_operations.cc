#include <algorithm>
#include <cmath>
#include <vector>

#include <absl/functional/function_ref.h>

#include "compute/cpu_attention.h"
#include "compute/cpu_gemm.h"
#include "compute/cpu_loops.h"
#include "compute/cpu_staging.h"
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
RowLoss CrossEntropyOfRow(std::span<const float> logits, std::int32_t label, float scale,
                          std::span<float> gradient) {
  const loops::Exponentials exponentials =
      loops::ExponentialsRow(logits.data(), gradient.data(), std::ssize(logits));
  loops::Scale(gradient.data(), scale / exponentials.sum, std::ssize(gradient));
  gradient[label] -= scale;
  const double shifted = static_cast<double>(logits[label]) - exponentials.largest;
  const auto first_largest = std::find(logits.begin(), logits.end(), exponentials.largest);
  return {.loss = std::log(static_cast<double>(exponentials.sum)) - shifted,
          .correct = first_largest - logits.begin() == label};
}

// Multiply-adds below which waking a thread takes longer than they do: about 20 us.
constexpr std::int64_t kLeastWorkOfThread = 1 << 20;

MatrixPart PartOf(const TensorView& matrix, std::int64_t begin, bool transpose) {
  return {.data = matrix.data + begin * SizeOf(matrix.dtype),
          .dtype = matrix.dtype,
          .stride = matrix.shape[1],
          .transpose = transpose};
}

class CpuOperations final : public Operations {
 public:
  explicit CpuOperations(int threads) : team_(threads) {}

  absl::Status MatMul(const MatMulShape& shape, const TensorView& a, const TensorView& b,
                      float beta, const TensorView& c) override {
    const std::int64_t multiply_adds = shape.m * shape.k * shape.n;
    if (a.dtype == DType::kBFloat16 && b.dtype == DType::kBFloat16 && MultipliesBFloat16()) {
      return InParts(multiply_adds, [&](int part, int parts) {
        const GemmPart cut = CutGemm(shape, part, parts);
        return MixedGemm(cut.shape, PartOf(a, cut.a, shape.transpose_a),
                         PartOf(b, cut.b, shape.transpose_b), beta, PartOf(c, cut.c, false));
      });
    }
    Staging staging;
    const float* left = staging.In(a);
    const float* right = staging.In(b);
    float* out = beta == 0.0F ? staging.Out(c) : staging.InOut(c);
    return InParts(multiply_adds, [&](int part, int parts) {
      const GemmPart cut = CutGemm(shape, part, parts);
      return Gemm(cut.shape,
                  {.data = left + cut.a, .stride = a.shape[1], .transpose = shape.transpose_a},
                  {.data = right + cut.b, .stride = b.shape[1], .transpose = shape.transpose_b},
                  beta, out + cut.c, c.shape[1]);
    });
  }

  absl::Status AddBias(const TensorView& x, const TensorView& bias, bool relu) override {
    Staging staging;
    loops::AddBias(staging.InOut(x), staging.In(bias), x.shape[0], x.shape[1], relu);
    return absl::OkStatus();
  }

  absl::Status AddBiasGelu(const TensorView& x, const TensorView& bias,
                           const TensorView& y) override {
    Staging staging;
    loops::AddBiasGelu(staging.InOut(x), staging.In(bias), staging.Out(y), x.shape[0], x.shape[1]);
    return absl::OkStatus();
  }

  absl::Status AddBiasResidual(const TensorView& x, const TensorView& bias,
                               const TensorView& residual) override {
    Staging staging;
    loops::AddBiasResidual(staging.InOut(x), staging.In(bias), staging.In(residual), x.shape[0],
                           x.shape[1]);
    return absl::OkStatus();
  }

  absl::Status ReluBackward(const TensorView& y, const TensorView& dy) override {
    Staging staging;
    loops::ReluBackward(staging.In(y), staging.InOut(dy), y.element_count());
    return absl::OkStatus();
  }

  absl::Status GeluBackward(const TensorView& x, const TensorView& dy) override {
    Staging staging;
    loops::GeluBackward(staging.In(x), staging.InOut(dy), x.element_count());
    return absl::OkStatus();
  }

  absl::Status AccumulateRowSums(const TensorView& x, const TensorView& out) override {
    Staging staging;
    loops::AccumulateRowSums(staging.InOut(out), staging.In(x), x.shape[0], x.shape[1]);
    return absl::OkStatus();
  }

  absl::Status EmbedTokens(const TensorView& tokens, const TensorView& table,
                           const TensorView& positions, const TensorView& out) override {
    const std::int64_t hidden = table.shape[1];
    const std::int64_t length = tokens.shape[1];
    Staging staging;
    const float* rows = staging.In(table);
    const float* places = staging.In(positions);
    float* target = staging.Out(out);
    std::int64_t row = 0;
    for (const std::int32_t token : HostValues<std::int32_t>(tokens)) {
      if (token < 0 || token >= table.shape[0]) {
        return InvalidArgument("token %d of sample %d is not one of %d", token, row / length,
                               table.shape[0]);
      }
      loops::Add(target + row * hidden, rows + token * hidden, places + row % length * hidden,
                 hidden);
      ++row;
    }
    return absl::OkStatus();
  }

  absl::Status EmbedTokensBackward(const TensorView& tokens, const TensorView& dout,
                                   const TensorView& dtable,
                                   const TensorView& dpositions) override {
    const std::int64_t hidden = dtable.shape[1];
    const std::int64_t length = tokens.shape[1];
    Staging staging;
    const float* source = staging.In(dout);
    float* rows = staging.InOut(dtable);
    float* places = staging.InOut(dpositions);
    std::int64_t row = 0;
    for (const std::int32_t token : HostValues<std::int32_t>(tokens)) {
      loops::AddTo(rows + token * hidden, source + row * hidden, hidden);
      loops::AddTo(places + row % length * hidden, source + row * hidden, hidden);
      ++row;
    }
    return absl::OkStatus();
  }

  absl::Status LayerNorm(const TensorView& x, const TensorView& gain, const TensorView& bias,
                         const TensorView& y, const TensorView& statistics) override {
    const std::int64_t n = x.shape[1];
    Staging staging;
    const float* from = staging.In(x);
    const float* gains = staging.In(gain);
    const float* biases = staging.In(bias);
    float* to = staging.Out(y);
    for (std::int64_t row = 0; row < x.shape[0]; ++row) {
      loops::LayerNormRow(from + row * n, gains, biases, to + row * n, Floats(statistics) + row * 2,
                          n);
    }
    return absl::OkStatus();
  }

  absl::Status LayerNormBackward(const TensorView& x, const TensorView& gain,
                                 const TensorView& statistics, const TensorView& dy,
                                 const LayerNormGradients& gradients) override {
    const std::int64_t n = x.shape[1];
    const float beta = gradients.beta;
    Staging staging;
    const float* from = staging.In(x);
    const float* gains = staging.In(gain);
    const float* dto = staging.In(dy);
    float* dx = beta == 0.0F ? staging.Out(gradients.dx) : staging.InOut(gradients.dx);
    float* dgain = staging.InOut(gradients.dgain);
    float* dbias = staging.InOut(gradients.dbias);
    for (std::int64_t row = 0; row < x.shape[0]; ++row) {
      loops::LayerNormBackwardRow(
          from + row * n, gains, Floats(statistics) + row * 2, dto + row * n,
          {.dx = dx + row * n, .beta = beta, .dgain = dgain, .dbias = dbias}, n);
    }
    return absl::OkStatus();
  }

  absl::Status CausalAttention(const TensorView& qkv, const TensorView& out,
                               const TensorView& log_sums) override {
    const AttentionShape shape = ShapeOf(out, log_sums);
    Staging staging;
    float* inputs = staging.InOut(qkv);
    float* outputs = staging.Out(out);
    float* sums = Floats(log_sums);
    return OverHeads(shape, out.shape[0],
                     [&](std::int64_t sample, std::int64_t head, std::vector<float>& scratch) {
                       return AttentionOfHead(
                           shape, PlaceOf(shape, sample, head, inputs, outputs, sums), scratch);
                     });
  }

  absl::Status CausalAttentionBackward(const TensorView& qkv, const TensorView& out,
                                       const TensorView& log_sums, const TensorView& dout,
                                       const TensorView& dqkv) override {
    const AttentionShape shape = ShapeOf(out, log_sums);
    Staging staging;
    float* inputs = staging.InOut(qkv);
    float* outputs = staging.InOut(out);
    float* dinputs = staging.Out(dqkv);
    float* doutputs = staging.InOut(dout);
    float* sums = Floats(log_sums);
    return OverHeads(shape, out.shape[0],
                     [&](std::int64_t sample, std::int64_t head, std::vector<float>& scratch) {
                       return AttentionBackwardOfHead(
                           shape, PlaceOf(shape, sample, head, inputs, outputs, sums),
                           PlaceOf(shape, sample, head, dinputs, doutputs, sums), scratch);
                     });
  }

  absl::StatusOr<LossSum> SoftmaxCrossEntropy(const TensorView& logits, const TensorView& labels,
                                              float scale, const TensorView& gradient) override {
    const std::int64_t classes = logits.shape[1];
    const auto count = static_cast<std::size_t>(logits.element_count());
    Staging staging;
    const std::span<const float> scores(staging.In(logits), count);
    const std::span<float> out(staging.Out(gradient), count);
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
          CrossEntropyOfRow(scores.subspan(row * classes, classes), label[row], scale, of_row);
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

  absl::Status Convert(const TensorView& x, const TensorView& y) override {
    Staging staging;
    std::copy_n(staging.In(x), x.element_count(), staging.Out(y));
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

std::string_view ProductsOf16Bits() {
  return MultipliesBFloat16() ? "bf16 in oneDNN's bf16 products, fp16 in fp32"
                              : "bf16 and fp16 in fp32: the processor has no products of 16 bits";
}

std::unique_ptr<Operations> MakeCpuOperations(int threads) {
  return std::make_unique<CpuOperations>(threads);
}

}  // namespace ranklab::compute
