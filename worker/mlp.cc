#include "worker/mlp.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/check.h"
#include "core/random.h"
#include "core/status.h"
#include "worker/streams.h"

namespace ranklab::worker {

using compute::DType;
using compute::MemoryKind;
using compute::TensorView;
using compute::Transpose;

Mlp::Mlp(const std::vector<int>& widths, std::int64_t max_samples)
    : widths_(widths), begins_{0}, max_samples_(max_samples) {
  RANKLAB_CHECK(widths.size() >= 2, "%d widths", widths.size());
  RANKLAB_CHECK(max_samples >= 1, "max_samples %d", max_samples);
  for (int layer = 0; layer < layer_count(); ++layer) {
    RANKLAB_CHECK(InputsOf(layer) > 0 && OutputsOf(layer) > 0, "an empty layer %d", layer);
    begins_.push_back(begins_.back() + (InputsOf(layer) + 1) * OutputsOf(layer));
  }
}

absl::StatusOr<std::unique_ptr<Mlp>> Mlp::Make(const std::vector<int>& widths,
                                               compute::Device& device, std::int64_t max_samples,
                                               DType storage) {
  std::unique_ptr<Mlp> model(new Mlp(widths, max_samples));
  model->device_ = &device;
  ASSIGN_OR_RETURN(model->memory_,
                   ParameterMemory::Make(device, model->parameter_count(), storage));
  return model;
}

absl::Status Mlp::Reserve(std::int64_t samples) {
  if (samples <= reserved_) {
    return absl::OkStatus();
  }
  // What is too small goes first.
  reserved_ = 0;
  labels_.reset();
  inputs_.reset();
  activations_.clear();
  deltas_ = {};
  const auto allocate = [&](std::int64_t columns, DType dtype, MemoryKind kind) {
    return device_->Allocate(samples * columns * SizeOf(dtype), kind);
  };
  const DType storage = memory_.storage();
  ASSIGN_OR_RETURN(labels_, allocate(1, DType::kInt32, MemoryKind::kData));
  if (storage != DType::kFloat32) {
    ASSIGN_OR_RETURN(inputs_, allocate(InputsOf(0), DType::kFloat32, MemoryKind::kData));
  }
  for (std::size_t boundary = 0; boundary < widths_.size(); ++boundary) {
    const MemoryKind kind = boundary == 0 ? MemoryKind::kData : MemoryKind::kActivations;
    ASSIGN_OR_RETURN(auto activation, allocate(widths_[boundary], storage, kind));
    activations_.push_back(std::move(activation));
  }
  const int widest = *std::max_element(widths_.begin() + 1, widths_.end());
  for (std::unique_ptr<compute::Buffer>& delta : deltas_) {
    ASSIGN_OR_RETURN(delta, allocate(widest, storage, MemoryKind::kActivations));
  }
  reserved_ = samples;
  return absl::OkStatus();
}

TensorView Mlp::ActivationAt(int boundary, std::int64_t samples) const {
  return ViewOf(*activations_.at(boundary), memory_.storage(),
                {samples, widths_.at(boundary), 1, 1});
}

TensorView Mlp::DeltaAt(int boundary, std::int64_t samples) const {
  return ViewOf(*deltas_.at(boundary % 2), memory_.storage(),
                {samples, widths_.at(boundary), 1, 1});
}

std::vector<NamedTensor> Mlp::NamedParameters() {
  std::vector<NamedTensor> named;
  const auto add = [&named](const std::string& name, const TensorView& view) {
    named.push_back({.name = name, .global_shape = view.shape, .offset = {}, .local = view});
  };
  for (int layer = 0; layer < layer_count(); ++layer) {
    const std::string prefix = absl::StrFormat("layers.%d.", layer);
    add(prefix + "weight", memory_.Master(ParameterBegin(layer), WeightShape(layer)));
    add(prefix + "bias", memory_.Master(BiasBegin(layer), BiasShape(layer)));
  }
  return named;
}

absl::Status Mlp::Initialize(std::uint64_t seed) {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(parameter_count()));
  for (int layer = 0; layer < layer_count(); ++layer) {
    Random random = StreamOf(seed, Stream::kInitialWeights).Split(layer);
    const double bound = 1.0 / std::sqrt(static_cast<double>(InputsOf(layer)));
    for (std::int64_t i = ParameterBegin(layer); i < ParameterBegin(layer + 1); ++i) {
      values.push_back(static_cast<float>((2.0 * random.Uniform() - 1.0) * bound));
    }
  }
  return CopyFromHost(compute::HostView(std::span(values)), parameters());
}

absl::Status Mlp::TakeInputs(const Batch& batch) const {
  const TensorView x = ActivationAt(0, batch.inputs.shape[0]);
  if (inputs_ == nullptr) {
    return CopyFromHost(batch.inputs, x);
  }
  const TensorView inputs = ViewOf(*inputs_, DType::kFloat32, x.shape);
  RETURN_IF_ERROR(CopyFromHost(batch.inputs, inputs));
  return Convert(inputs, x);
}

absl::Status Mlp::ForwardLayer(int layer, const Batch& batch) {
  const std::int64_t samples = batch.inputs.shape[0];
  RANKLAB_CHECK(1 <= samples && samples <= max_samples_, "%d samples, made for %d", samples,
                max_samples_);
  if (layer == 0) {
    RETURN_IF_ERROR(Reserve(samples));
    RETURN_IF_ERROR(TakeInputs(batch));
  }
  RETURN_IF_ERROR(memory_.Round(ParameterBegin(layer), ParameterBegin(layer + 1)));
  const TensorView y = ActivationAt(layer + 1, samples);
  RETURN_IF_ERROR(MatMul(ActivationAt(layer, samples), Transpose::kNo,
                         memory_.Weight(ParameterBegin(layer), WeightShape(layer)), Transpose::kYes,
                         /*beta=*/0.0F, y));
  const TensorView bias = memory_.Weight(BiasBegin(layer), BiasShape(layer));
  return layer + 1 < layer_count() ? AddBiasRelu(y, bias) : AddBias(y, bias);
}

absl::StatusOr<compute::LossSum> Mlp::Loss(const Batch& batch, float scale) {
  const std::int64_t samples = batch.inputs.shape[0];
  const TensorView labels = ViewOf(*labels_, DType::kInt32, {samples, 1, 1, 1});
  RETURN_IF_ERROR(CopyFromHost(batch.labels, labels));
  const int logits = layer_count();
  return SoftmaxCrossEntropy(ActivationAt(logits, samples), labels, scale,
                             DeltaAt(logits, samples));
}

absl::Status Mlp::BackwardLayer(int layer, const Batch& batch) {
  const std::int64_t samples = batch.inputs.shape[0];
  const TensorView x = ActivationAt(layer, samples);
  const TensorView dy = DeltaAt(layer + 1, samples);
  RETURN_IF_ERROR(MatMul(dy, Transpose::kYes, x, Transpose::kNo, /*beta=*/1.0F,
                         memory_.Gradient(ParameterBegin(layer), WeightShape(layer))));
  RETURN_IF_ERROR(AccumulateRowSums(dy, memory_.Gradient(BiasBegin(layer), BiasShape(layer))));
  if (layer == 0) {
    return absl::OkStatus();
  }
  const TensorView dx = DeltaAt(layer, samples);
  RETURN_IF_ERROR(MatMul(dy, Transpose::kNo,
                         memory_.Weight(ParameterBegin(layer), WeightShape(layer)), Transpose::kNo,
                         /*beta=*/0.0F, dx));
  return ReluBackward(x, dx);
}

LayerCost Mlp::CostOf(int layer, std::int64_t samples) const {
  const std::int64_t in = InputsOf(layer);
  const std::int64_t out = OutputsOf(layer);
  // What an epilogue touches beyond the product's own matrices.
  const auto with = [](fabric::Operation product, std::int64_t floats) {
    product.bytes += static_cast<double>(floats * SizeOf(DType::kFloat32));
    return product;
  };
  LayerCost cost;
  cost.forward.push_back(with(compute::CostOfMatMul(samples, in, out), out));
  if (layer + 1 == layer_count()) {
    cost.forward.push_back(compute::CostOfElementwise(samples * out, /*reads=*/1, /*writes=*/1));
  }
  cost.backward.push_back(with(compute::CostOfMatMul(out, samples, in), out));
  if (layer > 0) {
    cost.backward.push_back(with(compute::CostOfMatMul(samples, out, in), samples * in));
  }
  return cost;
}

}  // namespace ranklab::worker
