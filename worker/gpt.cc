#include "worker/gpt.h"

#include <utility>

#include "core/check.h"
#include "core/status.h"

namespace ranklab::worker {

using compute::DType;
using compute::MemoryKind;
using compute::TensorView;
using compute::Transpose;
using enum GptBlockTensor;

absl::StatusOr<std::unique_ptr<Gpt>> Gpt::Make(const GptOptions& options, compute::Device& device) {
  RANKLAB_CHECK(options.max_samples >= 1, "max_samples %d", options.max_samples);
  std::unique_ptr<Gpt> model(new Gpt(options, device));
  ASSIGN_OR_RETURN(model->memory_,
                   ParameterMemory::Make(device, model->parameter_count(), options.storage));
  return model;
}

absl::StatusOr<Gpt::BlockActivations> Gpt::AllocateBlock(std::int64_t rows) const {
  const auto allocate = [&](std::int64_t columns) {
    return device_.Allocate(rows * columns * SizeOf(options_.storage), MemoryKind::kActivations);
  };
  const auto allocate_floats = [&](std::int64_t columns) {
    return device_.Allocate(rows * columns * SizeOf(DType::kFloat32), MemoryKind::kActivations);
  };
  BlockActivations block;
  ASSIGN_OR_RETURN(block.statistics1, allocate_floats(2));
  ASSIGN_OR_RETURN(block.statistics2, allocate_floats(2));
  ASSIGN_OR_RETURN(block.normal1, allocate(hidden()));
  ASSIGN_OR_RETURN(block.normal2, allocate(hidden()));
  ASSIGN_OR_RETURN(block.qkv, allocate(3 * hidden()));
  ASSIGN_OR_RETURN(block.log_sums, allocate_floats(options_.shape.spec.heads));
  ASSIGN_OR_RETURN(block.attended, allocate(hidden()));
  ASSIGN_OR_RETURN(block.middle, allocate(hidden()));
  ASSIGN_OR_RETURN(block.expanded, allocate(options_.shape.expanded()));
  ASSIGN_OR_RETURN(block.activated, allocate(options_.shape.expanded()));
  return block;
}

absl::Status Gpt::Reserve(std::int64_t samples) {
  if (samples <= reserved_) {
    return absl::OkStatus();
  }
  // What is too small goes first.
  reserved_ = 0;
  for (BufferPointer* buffer : {&tokens_, &labels_, &final_statistics_, &final_normal_, &logits_,
                                &dlogits_, &dstream_, &dnarrow_, &dwide_}) {
    buffer->reset();
  }
  stream_.clear();
  activations_.clear();
  RETURN_IF_ERROR(Allocate(samples));
  reserved_ = samples;
  return absl::OkStatus();
}

absl::Status Gpt::Allocate(std::int64_t samples) {
  const std::int64_t rows = samples * options_.shape.spec.context;
  const auto allocate = [&](std::int64_t columns) {
    return device_.Allocate(rows * columns * SizeOf(options_.storage), MemoryKind::kActivations);
  };
  ASSIGN_OR_RETURN(tokens_, device_.Allocate(rows * SizeOf(DType::kInt32), MemoryKind::kData));
  ASSIGN_OR_RETURN(labels_, device_.Allocate(rows * SizeOf(DType::kInt32), MemoryKind::kData));
  for (int block = 0; block <= block_count(); ++block) {
    ASSIGN_OR_RETURN(auto stream, allocate(hidden()));
    stream_.push_back(std::move(stream));
  }
  for (int block = 0; block < (options_.recompute ? 1 : block_count()); ++block) {
    ASSIGN_OR_RETURN(auto activations, AllocateBlock(rows));
    activations_.push_back(std::move(activations));
  }
  ASSIGN_OR_RETURN(final_statistics_,
                   device_.Allocate(rows * 2 * SizeOf(DType::kFloat32), MemoryKind::kActivations));
  ASSIGN_OR_RETURN(final_normal_, allocate(hidden()));
  ASSIGN_OR_RETURN(logits_, allocate(options_.shape.vocabulary));
  ASSIGN_OR_RETURN(dlogits_, allocate(options_.shape.vocabulary));
  ASSIGN_OR_RETURN(dstream_, allocate(hidden()));
  ASSIGN_OR_RETURN(dnarrow_, allocate(hidden()));
  ASSIGN_OR_RETURN(dwide_, allocate(options_.shape.expanded()));
  return absl::OkStatus();
}

TensorView Gpt::Rows(const BufferPointer& buffer, std::int64_t rows, std::int64_t columns) const {
  return ViewOf(*buffer, options_.storage, {rows, columns, 1, 1});
}

TensorView Gpt::Statistics(const BufferPointer& buffer, std::int64_t rows) {
  return ViewOf(*buffer, DType::kFloat32, {rows, 2, 1, 1});
}

TensorView Gpt::Sequences(const BufferPointer& buffer, std::int64_t samples,
                          std::int64_t columns) const {
  return ViewOf(*buffer, options_.storage, {samples, options_.shape.spec.context, columns, 1});
}

TensorView Gpt::LogSums(const BlockActivations& block, std::int64_t samples) const {
  const experiment::GptSpec& spec = options_.shape.spec;
  return ViewOf(*block.log_sums, DType::kFloat32, {samples, spec.heads, spec.context, 1});
}

std::vector<NamedTensor> Gpt::NamedParameters() {
  std::vector<NamedTensor> named;
  for (const TensorPlace& place : layout_.places()) {
    const TensorView view = memory_.Master(place.begin, {place.rows, place.columns, 1, 1});
    named.push_back({.name = place.name, .global_shape = view.shape, .offset = {}, .local = view});
  }
  return named;
}

absl::Status Gpt::Initialize(std::uint64_t seed) {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(parameter_count()));
  for (int layer = 0; layer < layer_count(); ++layer) {
    layout_.AppendInitialValues(layer, seed, values);
  }
  return CopyFromHost(compute::HostView(std::span(values)), parameters());
}

absl::Status Gpt::Apply(const TensorPlace& weight, const TensorView& x, const TensorView& y) const {
  return MatMul(x, Transpose::kNo, Weight(weight), Transpose::kYes, /*beta=*/0.0F, y);
}

absl::Status Gpt::ApplyBackward(const TensorPlace& weight, const TensorView& x,
                                const TensorView& dy, const TensorView& dx) const {
  RETURN_IF_ERROR(MatMul(dy, Transpose::kYes, x, Transpose::kNo, /*beta=*/1.0F, Gradient(weight)));
  return MatMul(dy, Transpose::kNo, Weight(weight), Transpose::kNo, /*beta=*/0.0F, dx);
}

absl::Status Gpt::ForwardLayer(int layer, const Batch& batch) {
  const std::int64_t samples = batch.inputs.shape[0];
  RANKLAB_CHECK(1 <= samples && samples <= max_samples(), "%d samples, made for %d", samples,
                max_samples());
  RETURN_IF_ERROR(memory_.Round(ParameterBegin(layer), ParameterBegin(layer + 1)));
  if (layer == 0) {
    RETURN_IF_ERROR(Reserve(samples));
    return Embed(batch);
  }
  if (layer + 1 == layer_count()) {
    return ForwardHead(samples);
  }
  const int block = layer - 1;
  RETURN_IF_ERROR(ForwardAttention(block, samples));
  RETURN_IF_ERROR(ForwardExpansion(block, samples));
  return ForwardContraction(block, samples);
}

absl::StatusOr<compute::LossSum> Gpt::Loss(const Batch& batch, float scale) {
  const std::int64_t rows = batch.labels.element_count();
  const TensorView labels = ViewOf(*labels_, DType::kInt32, {rows, 1, 1, 1});
  RETURN_IF_ERROR(CopyFromHost(batch.labels, labels));
  const int vocabulary = options_.shape.vocabulary;
  return SoftmaxCrossEntropy(Rows(logits_, rows, vocabulary), labels, scale,
                             Rows(dlogits_, rows, vocabulary));
}

absl::Status Gpt::BackwardLayer(int layer, const Batch& batch) {
  const std::int64_t samples = batch.inputs.shape[0];
  if (layer == 0) {
    return BackwardEmbedding(samples);
  }
  if (layer + 1 == layer_count()) {
    return BackwardHead(samples);
  }
  const int block = layer - 1;
  if (options_.recompute) {
    RETURN_IF_ERROR(ForwardAttention(block, samples));
    RETURN_IF_ERROR(ForwardExpansion(block, samples));
  }
  RETURN_IF_ERROR(BackwardMlp(block, samples));
  return BackwardAttention(block, samples);
}

absl::Status Gpt::Embed(const Batch& batch) {
  const std::int64_t samples = batch.inputs.shape[0];
  const std::int64_t context = options_.shape.spec.context;
  RANKLAB_CHECK(batch.inputs.dtype == DType::kInt32 && batch.inputs.shape[1] == context,
                "samples of %d tokens, made for %d", batch.inputs.shape[1], context);
  const TensorView tokens = ViewOf(*tokens_, DType::kInt32, {samples, context, 1, 1});
  RETURN_IF_ERROR(CopyFromHost(batch.inputs, tokens));
  return EmbedTokens(tokens, Weight(layout_.token_table()), Weight(layout_.position_table()),
                     Rows(stream_[0], samples * context, hidden()));
}

// The residual stream x (R, C) becomes x + projection of attention over norm(x).
absl::Status Gpt::ForwardAttention(int block, std::int64_t samples) {
  const std::int64_t rows = samples * options_.shape.spec.context;
  const auto place = [&](GptBlockTensor tensor) { return layout_.Block(block, tensor); };
  BlockActivations& a = ActivationsOf(block);
  const TensorView x = Rows(stream_[block], rows, hidden());
  const TensorView normal = Rows(a.normal1, rows, hidden());
  const TensorView qkv = Rows(a.qkv, rows, 3 * hidden());
  const TensorView middle = Rows(a.middle, rows, hidden());
  RETURN_IF_ERROR(LayerNorm(x, Weight(place(kNorm1Gain)), Weight(place(kNorm1Bias)), normal,
                            Statistics(a.statistics1, rows)));
  RETURN_IF_ERROR(Apply(place(kQkvWeight), normal, qkv));
  RETURN_IF_ERROR(AddBias(qkv, Weight(place(kQkvBias))));
  RETURN_IF_ERROR(CausalAttention(Sequences(a.qkv, samples, 3 * hidden()),
                                  Sequences(a.attended, samples, hidden()), LogSums(a, samples)));
  RETURN_IF_ERROR(Apply(place(kProjectionWeight), Rows(a.attended, rows, hidden()), middle));
  return AddBiasResidual(middle, Weight(place(kProjectionBias)), x);
}

// activated (R, 4 C) = GELU of the expansion of norm(middle).
absl::Status Gpt::ForwardExpansion(int block, std::int64_t samples) {
  const std::int64_t rows = samples * options_.shape.spec.context;
  const auto place = [&](GptBlockTensor tensor) { return layout_.Block(block, tensor); };
  BlockActivations& a = ActivationsOf(block);
  const TensorView normal = Rows(a.normal2, rows, hidden());
  const TensorView expanded = Rows(a.expanded, rows, options_.shape.expanded());
  RETURN_IF_ERROR(LayerNorm(Rows(a.middle, rows, hidden()), Weight(place(kNorm2Gain)),
                            Weight(place(kNorm2Bias)), normal, Statistics(a.statistics2, rows)));
  RETURN_IF_ERROR(Apply(place(kExpandWeight), normal, expanded));
  return AddBiasGelu(expanded, Weight(place(kExpandBias)),
                     Rows(a.activated, rows, options_.shape.expanded()));
}

// What goes into the next layer: middle + contraction of activated.
absl::Status Gpt::ForwardContraction(int block, std::int64_t samples) {
  const std::int64_t rows = samples * options_.shape.spec.context;
  BlockActivations& a = ActivationsOf(block);
  const TensorView y = Rows(stream_[block + 1], rows, hidden());
  RETURN_IF_ERROR(Apply(layout_.Block(block, kContractWeight),
                        Rows(a.activated, rows, options_.shape.expanded()), y));
  return AddBiasResidual(y, Weight(layout_.Block(block, kContractBias)),
                         Rows(a.middle, rows, hidden()));
}

absl::Status Gpt::ForwardHead(std::int64_t samples) {
  const std::int64_t rows = samples * options_.shape.spec.context;
  const TensorView normal = Rows(final_normal_, rows, hidden());
  RETURN_IF_ERROR(LayerNorm(Rows(stream_.back(), rows, hidden()), Weight(layout_.final_gain()),
                            Weight(layout_.final_bias()), normal,
                            Statistics(final_statistics_, rows)));
  return Apply(layout_.head(), normal, Rows(logits_, rows, options_.shape.vocabulary));
}

// A tied head adds to the token table's gradient, which layer 0 completes.
absl::Status Gpt::BackwardHead(std::int64_t samples) {
  const std::int64_t rows = samples * options_.shape.spec.context;
  const TensorView dnormal = Rows(dnarrow_, rows, hidden());
  RETURN_IF_ERROR(ApplyBackward(layout_.head(), Rows(final_normal_, rows, hidden()),
                                Rows(dlogits_, rows, options_.shape.vocabulary), dnormal));
  return LayerNormBackward(Rows(stream_.back(), rows, hidden()), Weight(layout_.final_gain()),
                           Statistics(final_statistics_, rows), dnormal,
                           {.dx = Rows(dstream_, rows, hidden()),
                            .beta = 0.0F,
                            .dgain = Gradient(layout_.final_gain()),
                            .dbias = Gradient(layout_.final_bias())});
}

// dstream: from the gradient of the block's output to that of `middle`.
absl::Status Gpt::BackwardMlp(int block, std::int64_t samples) {
  const std::int64_t rows = samples * options_.shape.spec.context;
  const auto place = [&](GptBlockTensor tensor) { return layout_.Block(block, tensor); };
  BlockActivations& a = ActivationsOf(block);
  const TensorView dstream = Rows(dstream_, rows, hidden());
  const TensorView dexpanded = Rows(dwide_, rows, options_.shape.expanded());
  const TensorView dnormal = Rows(dnarrow_, rows, hidden());
  RETURN_IF_ERROR(AccumulateRowSums(dstream, Gradient(place(kContractBias))));
  RETURN_IF_ERROR(ApplyBackward(place(kContractWeight),
                                Rows(a.activated, rows, options_.shape.expanded()), dstream,
                                dexpanded));
  RETURN_IF_ERROR(GeluBackward(Rows(a.expanded, rows, options_.shape.expanded()), dexpanded));
  RETURN_IF_ERROR(AccumulateRowSums(dexpanded, Gradient(place(kExpandBias))));
  RETURN_IF_ERROR(
      ApplyBackward(place(kExpandWeight), Rows(a.normal2, rows, hidden()), dexpanded, dnormal));
  return LayerNormBackward(Rows(a.middle, rows, hidden()), Weight(place(kNorm2Gain)),
                           Statistics(a.statistics2, rows), dnormal,
                           {.dx = dstream,
                            .beta = 1.0F,
                            .dgain = Gradient(place(kNorm2Gain)),
                            .dbias = Gradient(place(kNorm2Bias))});
}

// dstream: from the gradient of `middle` to that of the block's input.
absl::Status Gpt::BackwardAttention(int block, std::int64_t samples) {
  const std::int64_t rows = samples * options_.shape.spec.context;
  const auto place = [&](GptBlockTensor tensor) { return layout_.Block(block, tensor); };
  BlockActivations& a = ActivationsOf(block);
  const TensorView dstream = Rows(dstream_, rows, hidden());
  const TensorView dqkv = Rows(dwide_, rows, 3 * hidden());
  const TensorView dattended = Rows(dnarrow_, rows, hidden());
  RETURN_IF_ERROR(AccumulateRowSums(dstream, Gradient(place(kProjectionBias))));
  RETURN_IF_ERROR(ApplyBackward(place(kProjectionWeight), Rows(a.attended, rows, hidden()), dstream,
                                dattended));
  RETURN_IF_ERROR(CausalAttentionBackward(
      Sequences(a.qkv, samples, 3 * hidden()), Sequences(a.attended, samples, hidden()),
      LogSums(a, samples), Sequences(dnarrow_, samples, hidden()),
      Sequences(dwide_, samples, 3 * hidden())));
  RETURN_IF_ERROR(AccumulateRowSums(dqkv, Gradient(place(kQkvBias))));
  const TensorView dnormal = dattended;  // the attention has used it up
  RETURN_IF_ERROR(ApplyBackward(place(kQkvWeight), Rows(a.normal1, rows, hidden()), dqkv, dnormal));
  return LayerNormBackward(Rows(stream_[block], rows, hidden()), Weight(place(kNorm1Gain)),
                           Statistics(a.statistics1, rows), dnormal,
                           {.dx = dstream,
                            .beta = 1.0F,
                            .dgain = Gradient(place(kNorm1Gain)),
                            .dbias = Gradient(place(kNorm1Bias))});
}

absl::Status Gpt::BackwardEmbedding(std::int64_t samples) {
  const std::int64_t context = options_.shape.spec.context;
  return EmbedTokensBackward(ViewOf(*tokens_, DType::kInt32, {samples, context, 1, 1}),
                             Rows(dstream_, samples * context, hidden()),
                             Gradient(layout_.token_table()), Gradient(layout_.position_table()));
}

}  // namespace ranklab::worker
