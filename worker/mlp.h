// A multi-layer perceptron: dense layers, ReLU between them, softmax and cross entropy at the end.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "worker/model.h"
#include "worker/parameter_memory.h"

namespace ranklab::worker {

// Layer l computes y = x W^T + b, then ReLU unless it is the last one; W (outputs, inputs) and b
// (outputs) lie behind each other, as "layers.l.weight" and "layers.l.bias".
//
// Initialize draws W and b uniformly from +-1/sqrt(inputs), the default of PyTorch's nn.Linear, in
// the order in which they lie, from the seed's stream of the layer.
//
// Cost of a layer on a GPU, n = samples: forward one product with bias and ReLU in its epilogue;
// backward one product for the gradient of W with that of b in its epilogue, and but for layer 0
// one for the gradient of x with the ReLU's of the layer below in its epilogue; the loss is one
// fused pass over the logits. Epilogues: NVIDIA, cuBLAS documentation, cublasLtEpilogue_t
// (RELU_BIAS, BGRADB, DRELU).
class Mlp final : public Model {
 public:
  // `widths`: inputs, hidden layers, classes. Requires: at least two, all positive.
  // Errors: ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<Mlp>> Make(
      const std::vector<int>& widths, compute::Device& device, std::int64_t max_samples,
      compute::DType storage = compute::DType::kFloat32);

  int layer_count() const override { return static_cast<int>(widths_.size()) - 1; }
  std::int64_t max_samples() const override { return max_samples_; }
  std::int64_t parameter_count() const override { return begins_.back(); }
  std::int64_t ParameterBegin(int layer) const override { return begins_.at(layer); }
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
  Mlp(const std::vector<int>& widths, std::int64_t max_samples);
  // Makes room for a batch of `samples`, if it is the largest so far.
  absl::Status Reserve(std::int64_t samples);

  std::int64_t InputsOf(int layer) const { return widths_.at(layer); }
  std::int64_t OutputsOf(int layer) const { return widths_.at(layer + 1); }
  ParameterMemory::Shape WeightShape(int layer) const {
    return {OutputsOf(layer), InputsOf(layer), 1, 1};
  }
  ParameterMemory::Shape BiasShape(int layer) const { return {OutputsOf(layer), 1, 1, 1}; }
  std::int64_t BiasBegin(int layer) const { return ParameterBegin(layer + 1) - OutputsOf(layer); }
  // The batch's inputs as what goes into layer 0.
  absl::Status TakeInputs(const Batch& batch) const;
  // What goes into layer `boundary` (0: the batch) and its gradient: (samples, widths[boundary]).
  compute::TensorView ActivationAt(int boundary, std::int64_t samples) const;
  compute::TensorView DeltaAt(int boundary, std::int64_t samples) const;

  std::vector<int> widths_;
  std::vector<std::int64_t> begins_;  // [layer], and the end
  std::int64_t max_samples_;
  compute::Device* device_ = nullptr;
  std::int64_t reserved_ = 0;  // samples that there is room for
  ParameterMemory memory_;
  std::unique_ptr<compute::Buffer> labels_;
  std::unique_ptr<compute::Buffer> inputs_;  // float32; null where activations are too
  std::vector<std::unique_ptr<compute::Buffer>> activations_;  // [boundary]
  // Gradients of the activations are needed at two neighbouring boundaries only: even and odd.
  std::array<std::unique_ptr<compute::Buffer>, 2> deltas_;
};

}  // namespace ranklab::worker
