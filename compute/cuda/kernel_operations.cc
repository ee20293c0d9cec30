#include "compute/cuda/kernel_operations.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compute/cuda/matrix_product.h"
#include "compute/cuda/scratch.h"
#include "compute/cuda/stream_memory.h"
#include "core/status.h"

namespace ranklab::compute::cuda {
namespace {

// `view` in rows of `row` elements; all of it as one row where none is given.
Operand In(const TensorView& view, std::int64_t row = 0) {
  return OperandOf(view.data, view.dtype, row);
}

float* Floats(const TensorView& view) { return reinterpret_cast<float*>(view.data); }

const std::int32_t* Integers(const TensorView& view) {
  return reinterpret_cast<const std::int32_t*>(view.data);
}

Extent RowsOf(const TensorView& x) { return {x.shape[0], x.shape[1]}; }
Extent Flat(const TensorView& x) { return {1, x.element_count()}; }

class KernelOperations final : public Operations {
 public:
  KernelOperations(const OperationsOptions& options, std::unique_ptr<MatrixProducts> products)
      : options_(options), products_(std::move(products)), scratch_(options.stream) {}

  absl::Status MatMul(const MatMulShape& shape, const TensorView& a, const TensorView& b,
                      float beta, const TensorView& c) override {
    return products_->Multiply(shape, a, b, beta, c);
  }

  absl::Status AddBias(const TensorView& x, const TensorView& bias, bool relu) override {
    const std::int64_t n = x.shape[1];
    return Elementwise(AddBiasKernel{In(x, n), In(bias), n, relu}, RowsOf(x), "AddBias");
  }

  absl::Status AddBiasGelu(const TensorView& x, const TensorView& bias,
                           const TensorView& y) override {
    const std::int64_t n = x.shape[1];
    return Elementwise(AddBiasGeluKernel{In(x, n), In(bias), In(y, n), n}, RowsOf(x),
                       "AddBiasGelu");
  }

  absl::Status AddBiasResidual(const TensorView& x, const TensorView& bias,
                               const TensorView& residual) override {
    const std::int64_t n = x.shape[1];
    return Elementwise(AddBiasResidualKernel{In(x, n), In(bias), In(residual, n), n}, RowsOf(x),
                       "AddBiasResidual");
  }

  absl::Status ReluBackward(const TensorView& y, const TensorView& dy) override {
    return Elementwise(ReluBackwardKernel{In(y), In(dy)}, Flat(y), "ReluBackward");
  }

  absl::Status GeluBackward(const TensorView& x, const TensorView& dy) override {
    return Elementwise(GeluBackwardKernel{In(x), In(dy)}, Flat(x), "GeluBackward");
  }

  absl::Status AccumulateRowSums(const TensorView& x, const TensorView& out) override {
    return AddColumnSums(RowValues{In(x, x.shape[1]), x.shape[1]}, x, {&out});
  }

  absl::Status EmbedTokens(const TensorView& tokens, const TensorView& table,
                           const TensorView& positions, const TensorView& out) override {
    const std::int64_t hidden = table.shape[1];
    const std::int64_t length = tokens.shape[1];
    RETURN_IF_ERROR(CheckTokens(tokens, table.shape[0]));
    return Elementwise(EmbedTokensKernel{Integers(tokens), In(table, hidden), In(positions, hidden),
                                         In(out, hidden), length, hidden},
                       RowsOf(out), "EmbedTokens");
  }

  absl::Status EmbedTokensBackward(const TensorView& tokens, const TensorView& dout,
                                   const TensorView& dtable,
                                   const TensorView& dpositions) override {
    const std::int64_t hidden = dtable.shape[1];
    const std::int64_t length = tokens.shape[1];
    RETURN_IF_ERROR(
        StatusOf(LaunchGatherTokenGradients({Integers(tokens), tokens.element_count(),
                                             In(dout, hidden), In(dtable, hidden), hidden},
                                            dtable.shape[0], options_.stream),
                 "EmbedTokensBackward"));
    return Elementwise(PositionGradientsKernel{In(dout, hidden), In(dpositions, hidden),
                                               tokens.shape[0], length, hidden},
                       {length, hidden}, "EmbedTokensBackward");
  }

  absl::Status LayerNorm(const TensorView& x, const TensorView& gain, const TensorView& bias,
                         const TensorView& y, const TensorView& statistics) override {
    const std::int64_t n = x.shape[1];
    return StatusOf(LaunchLayerNorm({In(x, n), In(gain), In(bias), In(y, n), Floats(statistics), n},
                                    x.shape[0], options_.stream),
                    "LayerNorm");
  }

  absl::Status LayerNormBackward(const TensorView& x, const TensorView& gain,
                                 const TensorView& statistics, const TensorView& dy,
                                 const LayerNormGradients& gradients) override {
    const std::int64_t n = x.shape[1];
    // The sums first: dx may be where x's gradient is, but never x or dy.
    RETURN_IF_ERROR(
        AddColumnSums(LayerNormGradientValues{In(x, n), In(dy, n), Floats(statistics), n}, x,
                      {&gradients.dgain, &gradients.dbias}));
    return StatusOf(LaunchLayerNormBackward({In(x, n), In(gain), In(dy, n), In(gradients.dx, n),
                                             Floats(statistics), n, gradients.beta},
                                            x.shape[0], options_.stream),
                    "LayerNormBackward");
  }

  absl::Status CausalAttention(const TensorView& qkv, const TensorView& out,
                               const TensorView& log_sums) override {
    ASSIGN_OR_RETURN(const AttentionArguments arguments, AttentionOf(qkv, out, log_sums));
    return StatusOf(LaunchAttention(arguments, out.shape[0], options_.stream), "CausalAttention");
  }

  absl::Status CausalAttentionBackward(const TensorView& qkv, const TensorView& out,
                                       const TensorView& log_sums, const TensorView& dout,
                                       const TensorView& dqkv) override {
    ASSIGN_OR_RETURN(AttentionArguments arguments, AttentionOf(qkv, out, log_sums));
    ASSIGN_OR_RETURN(void* const means, scratch_.Take(log_sums.byte_count()));
    arguments.dout = In(dout);
    arguments.dqkv = In(dqkv);
    arguments.means = static_cast<float*>(means);
    return StatusOf(LaunchAttentionBackward(arguments, out.shape[0], options_.stream),
                    "CausalAttentionBackward");
  }

  absl::StatusOr<LossSum> SoftmaxCrossEntropy(const TensorView& logits, const TensorView& labels,
                                              float scale, const TensorView& gradient) override {
    const std::int64_t rows = logits.shape[0];
    const std::int64_t classes = logits.shape[1];
    ASSIGN_OR_RETURN(void* const memory,
                     scratch_.Take((rows + 1) * static_cast<Bytes>(sizeof(LossOfRows))));
    auto* const of_row = static_cast<LossOfRows*>(memory);
    RETURN_IF_ERROR(StatusOf(LaunchCrossEntropy({In(logits, classes), In(gradient, classes),
                                                 Integers(labels), classes, scale, of_row},
                                                rows, of_row + rows, options_.stream),
                             "SoftmaxCrossEntropy"));
    ASSIGN_OR_RETURN(const LossOfRows sum, Fetch(of_row + rows, "SoftmaxCrossEntropy"));
    if (sum.bad_row != kNoRow) {
      ASSIGN_OR_RETURN(const std::int32_t label,
                       Fetch(Integers(labels) + sum.bad_row, "SoftmaxCrossEntropy"));
      return InvalidArgument("label %d of row %d is not one of %d classes", label, sum.bad_row,
                             classes);
    }
    return LossSum{.loss = sum.loss, .correct = sum.correct, .targets = sum.targets};
  }

  absl::StatusOr<double> SumOfSquares(const TensorView& x) override {
    ASSIGN_OR_RETURN(void* const memory,
                     scratch_.Take((kMostSumParts + 1) * static_cast<Bytes>(sizeof(double))));
    auto* const parts = static_cast<double*>(memory);
    RETURN_IF_ERROR(StatusOf(
        LaunchSumOfSquares(In(x), x.element_count(), parts, parts + kMostSumParts, options_.stream),
        "SumOfSquares"));
    return Fetch(parts + kMostSumParts, "SumOfSquares");
  }

  absl::Status SgdUpdate(const TensorView& parameters, const TensorView& gradients, float scale,
                         float learning_rate) override {
    return Elementwise(SgdKernel{In(parameters), In(gradients), scale, learning_rate},
                       Flat(parameters), "SgdUpdate");
  }

  absl::Status MomentumUpdate(const TensorView& parameters, const TensorView& gradients,
                              const TensorView& velocity, float scale, float learning_rate,
                              float momentum) override {
    return Elementwise(
        MomentumKernel{In(parameters), In(gradients), In(velocity), scale, learning_rate, momentum},
        Flat(parameters), "MomentumUpdate");
  }

  absl::Status AdamWUpdate(const TensorView& parameters, const TensorView& gradients,
                           const TensorView& m, const TensorView& v, float scale,
                           const AdamWStep& step) override {
    return Elementwise(AdamWKernel{In(parameters), In(gradients), In(m), In(v), scale, step},
                       Flat(parameters), "AdamWUpdate");
  }

  absl::Status Convert(const TensorView& x, const TensorView& y) override {
    return Elementwise(ConvertKernel{In(x), In(y)}, Flat(x), "Convert");
  }

  absl::Status FillZero(const TensorView& x) override {
    return StatusOf(ClearOn(options_.stream, x.data, x.byte_count()), "FillZero");
  }

  absl::Status CopyFromHost(const TensorView& host, const TensorView& x) override {
    return StatusOf(CopyIn(options_.stream, host.data, x.data, x.byte_count()), "CopyFromHost");
  }

  absl::Status CopyToHost(const TensorView& x, const TensorView& host) override {
    return StatusOf(CopyOut(options_.stream, x.data, host.data, x.byte_count()), "CopyToHost");
  }

 private:
  template <typename Kernel>
  absl::Status Elementwise(const Kernel& kernel, const Extent& extent, const char* name) {
    return StatusOf(Launch(kernel, extent, options_.stream), name);
  }

  // A value of device memory, once everything before it is done.
  template <typename T>
  absl::StatusOr<T> Fetch(const T* from, const char* name) {
    T value;
    RETURN_IF_ERROR(StatusOf(CopyOut(options_.stream, from, &value, sizeof value), name));
    return value;
  }

  absl::Status CheckTokens(const TensorView& tokens, std::int64_t vocabulary) {
    ASSIGN_OR_RETURN(void* const memory, scratch_.Take(sizeof(std::int64_t)));
    auto* const first = static_cast<std::int64_t*>(memory);
    RETURN_IF_ERROR(StatusOf(LaunchFindBadToken(Integers(tokens), tokens.element_count(),
                                                vocabulary, first, options_.stream),
                             "EmbedTokens"));
    ASSIGN_OR_RETURN(const std::int64_t bad, Fetch(first, "EmbedTokens"));
    if (bad == kNoToken) {
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const std::int32_t token, Fetch(Integers(tokens) + bad, "EmbedTokens"));
    return InvalidArgument("token %d of sample %d is not one of %d", token, bad / tokens.shape[1],
                           vocabulary);
  }

  // outs[i] (n) += the sums over the rows of x of values' i-th output.
  template <typename Values>
  absl::Status AddColumnSums(const Values& values, const TensorView& x,
                             std::initializer_list<const TensorView*> outs) {
    constexpr std::int64_t kMostParts = 64;  // blocks above each other, if x has as many rows
    constexpr std::int64_t kLeastRows = 32;
    const std::int64_t rows = x.shape[0];
    const std::int64_t n = x.shape[1];
    if (rows == 0 || n == 0) {
      return absl::OkStatus();
    }
    const std::int64_t of_block = std::max(kLeastRows, (rows + kMostParts - 1) / kMostParts);
    const std::int64_t parts = (rows + of_block - 1) / of_block;
    ASSIGN_OR_RETURN(void* const memory, scratch_.Take(parts * Values::kOutputs * n *
                                                       static_cast<Bytes>(sizeof(float))));
    auto* const partial = static_cast<float*>(memory);
    RETURN_IF_ERROR(StatusOf(
        LaunchColumnSums(values, {rows, n, of_block}, partial, options_.stream), "column sums"));
    int output = 0;
    for (const TensorView* out : outs) {
      RETURN_IF_ERROR(Elementwise(AddPartialSumsKernel{partial, static_cast<int>(parts),
                                                       Values::kOutputs, output, n, In(*out)},
                                  {1, n}, "column sums"));
      ++output;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<AttentionArguments> AttentionOf(const TensorView& qkv, const TensorView& out,
                                                 const TensorView& log_sums) const {
    const std::int64_t heads = log_sums.shape[1];
    const std::int64_t width = out.shape[2] / heads;
    if (AttentionSharedBytes(width) > options_.most_shared_memory) {
      return InvalidArgument("heads of %d are too wide for %s: a block has %d bytes of memory",
                             width, options_.device, options_.most_shared_memory);
    }
    return AttentionArguments{.qkv = In(qkv),
                              .out = In(out),
                              .log_sums = Floats(log_sums),
                              .length = out.shape[1],
                              .heads = heads,
                              .width = width,
                              .scale = 1.0F / std::sqrt(static_cast<float>(width))};
  }

  const OperationsOptions options_;
  const std::unique_ptr<MatrixProducts> products_;
  Scratch scratch_;
};

}  // namespace

std::unique_ptr<Operations> MakeKernelOperations(const OperationsOptions& options,
                                                 std::unique_ptr<MatrixProducts> products) {
  return std::make_unique<KernelOperations>(options, std::move(products));
}

}  // namespace ranklab::compute::cuda
