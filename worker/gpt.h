// A decoder of the GPT-2 kind: token and position embedding, pre-norm blocks of causal attention
// and a GELU MLP, a final norm, a head over the vocabulary, cross entropy.
#pragma once

#include <memory>
#include <vector>

#include "worker/gpt_layout.h"
#include "worker/model.h"
#include "worker/parameter_memory.h"

namespace ranklab::worker {

struct GptOptions {
  GptShape shape;
  std::int64_t max_samples = 0;
  // Activation recomputation: of each block only what goes into it is kept; its backward pass runs
  // its forward pass again. Source: Chen et al., "Training deep nets with sublinear memory cost",
  // 2016.
  bool recompute = false;
  // Of activations, their gradients, and the weights that the passes read; statistics of norms and
  // attention are float32.
  compute::DType storage = compute::DType::kFloat32;
};

// A sample is a sequence of T tokens, each with the token to be predicted after it, or kNoTarget.
// Loss and gradients are sums over targets. Letters: B samples, T context, C hidden, V vocabulary,
// H heads, R = B T rows.
//
// Cost of a layer on a GPU: every bias, GELU and residual addition is in the epilogue of the
// product before it; a norm reads and writes its rows once forward, and backward reads two and
// writes one; attention is one fused operation that keeps no (T, T) matrix: 2 products of half a
// score matrix forward, 5 backward.
class Gpt final : public Model {
 public:
  // Requires: what GptLayout does; max_samples >= 1. Errors: ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<Gpt>> Make(const GptOptions& options,
                                                   compute::Device& device);

  int layer_count() const override { return layout_.layer_count(); }
  std::int64_t max_samples() const override { return options_.max_samples; }
  std::int64_t parameter_count() const override { return layout_.parameter_count(); }
  std::int64_t ParameterBegin(int layer) const override { return layout_.ParameterBegin(layer); }
  compute::TensorView parameters() override { return memory_.parameters(); }
  compute::TensorView gradients() override { return memory_.gradients(); }
  std::vector<NamedTensor> NamedParameters() override;
  absl::Status Initialize(std::uint64_t seed) override;
  absl::Status ZeroGradients() override { return memory_.ZeroGradients(); }
  absl::Status ForwardLayer(int layer, const Batch& batch) override;
  absl::StatusOr<compute::LossSum> Loss(const Batch& batch, float scale) override;
  absl::Status BackwardLayer(int layer, const Batch& batch) override;
  LayerCost CostOf(int layer, std::int64_t samples) const override;

 private:
  using BufferPointer = std::unique_ptr<compute::Buffer>;

  // What a block's backward pass needs, but for its input.
  struct BlockActivations {
    BufferPointer statistics1, statistics2;  // (R, 2)
    BufferPointer normal1, normal2;          // (R, C): the norms' outputs
    BufferPointer qkv;                       // (B, T, 3 C)
    BufferPointer log_sums;                  // (B, H, T)
    BufferPointer attended;                  // (B, T, C)
    BufferPointer middle;                    // (R, C): the residual stream after attention
    BufferPointer expanded, activated;       // (R, 4 C): before and after GELU
  };

  Gpt(const GptOptions& options, compute::Device& device)
      : options_(options), device_(device), layout_(options.shape) {}
  // Makes room for a batch of `samples`, if it is the largest so far.
  absl::Status Reserve(std::int64_t samples);
  absl::Status Allocate(std::int64_t samples);
  absl::StatusOr<BlockActivations> AllocateBlock(std::int64_t rows) const;

  std::int64_t hidden() const { return options_.shape.hidden(); }
  int block_count() const { return options_.shape.spec.layers; }
  BlockActivations& ActivationsOf(int block) {
    return activations_.at(options_.recompute ? 0 : static_cast<std::size_t>(block));
  }

  // (rows, columns) of a buffer of activations.
  compute::TensorView Rows(const BufferPointer& buffer, std::int64_t rows,
                           std::int64_t columns) const;
  // (rows, 2), float32.
  static compute::TensorView Statistics(const BufferPointer& buffer, std::int64_t rows);
  // (samples, T, columns), the same memory.
  compute::TensorView Sequences(const BufferPointer& buffer, std::int64_t samples,
                                std::int64_t columns) const;
  compute::TensorView LogSums(const BlockActivations& block, std::int64_t samples) const;
  compute::TensorView Weight(const TensorPlace& place) const {
    return memory_.Weight(place.begin, {place.rows, place.columns, 1, 1});
  }
  compute::TensorView Gradient(const TensorPlace& place) const {
    return memory_.Gradient(place.begin, {place.rows, place.columns, 1, 1});
  }

  // y (rows, outputs) = x (rows, inputs) W^T.
  absl::Status Apply(const TensorPlace& weight, const compute::TensorView& x,
                     const compute::TensorView& y) const;
  // Adds to the gradient of W, and dx = dy W.
  absl::Status ApplyBackward(const TensorPlace& weight, const compute::TensorView& x,
                             const compute::TensorView& dy, const compute::TensorView& dx) const;

  absl::Status Embed(const Batch& batch);
  absl::Status ForwardAttention(int block, std::int64_t samples);
  absl::Status ForwardExpansion(int block, std::int64_t samples);
  absl::Status ForwardContraction(int block, std::int64_t samples);
  absl::Status ForwardHead(std::int64_t samples);
  absl::Status BackwardHead(std::int64_t samples);
  absl::Status BackwardMlp(int block, std::int64_t samples);
  absl::Status BackwardAttention(int block, std::int64_t samples);
  absl::Status BackwardEmbedding(std::int64_t samples);

  GptOptions options_;
  compute::Device& device_;
  GptLayout layout_;
  ParameterMemory memory_;
  std::int64_t reserved_ = 0;                  // samples that there is room for
  BufferPointer tokens_, labels_;              // (B, T)
  std::vector<BufferPointer> stream_;          // [block, and the end]: (R, C), what goes into it
  std::vector<BlockActivations> activations_;  // [block], or one for all
  BufferPointer final_statistics_, final_normal_;  // (R, 2), (R, C)
  BufferPointer logits_, dlogits_;                 // (R, V)
  BufferPointer dstream_;                          // (R, C): gradient of the residual stream
  BufferPointer dnarrow_;                          // (R, C)
  BufferPointer dwide_;                            // (R, 4 C)
};

}  // namespace ranklab::worker
