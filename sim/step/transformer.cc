#include "sim/step/transformer.h"

#include <array>
#include <vector>

#include "core/nearest.h"
#include "core/status.h"

namespace ranklab::sim {
namespace {

constexpr Transformer Gpt(std::string_view name, int layers, int hidden, int heads,
                          std::string_view source) {
  return {.name = name,
          .layers = layers,
          .hidden = hidden,
          .heads = heads,
          .groups = heads,
          .feed_forward = 4 * hidden,
          .vocabulary = 51200,
          .sequence = 2048,
          .source = source};
}

struct LlamaShape {
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int groups = 0;
  int feed_forward = 0;
  int vocabulary = 0;
  int sequence = 0;
};

constexpr Transformer Llama(std::string_view name, const LlamaShape& shape) {
  return {.name = name,
          .layers = shape.layers,
          .hidden = shape.hidden,
          .heads = shape.heads,
          .groups = shape.groups,
          .feed_forward = shape.feed_forward,
          .vocabulary = shape.vocabulary,
          .sequence = shape.sequence,
          .gated = true,
          .dropout = false,
          .tied = false,
          .learned_positions = false,
          .source = "the model's published configuration"};
}

constexpr Transformer Mixtral() {
  Transformer model = Llama("mixtral-8x7b", {32, 4096, 32, 8, 14336, 32000, 4096});
  model.experts = 8;
  model.top_k = 2;
  return model;
}

constexpr std::string_view kMegatron = "Narayanan et al., SC 2021, table 1";
constexpr std::string_view kKorthikanti = "Korthikanti et al., arXiv 2205.05198, table 3";

constexpr std::array kModels = {
    Gpt("gpt2-1.5b", 48, 1600, 25, "Radford et al., 2019; sequence and vocabulary as Megatron's"),
    Gpt("gpt3-13b", 40, 5120, 40, "Brown et al., arXiv 2005.14165, table 2.1, hidden 5140 as 5120"),
    Gpt("gpt3-175b", 96, 12288, 96, "Brown et al., arXiv 2005.14165, table 2.1"),
    Gpt("megatron-1.7b", 24, 2304, 24, kMegatron),
    Gpt("megatron-3.6b", 30, 3072, 32, kMegatron),
    Gpt("megatron-7.5b", 36, 4096, 32, kMegatron),
    Gpt("megatron-18b", 40, 6144, 48, kMegatron),
    Gpt("megatron-22b", 48, 6144, 64, kKorthikanti),
    Gpt("megatron-39b", 48, 8192, 64, kMegatron),
    Gpt("megatron-76b", 60, 10240, 80, kMegatron),
    Gpt("megatron-145b", 80, 12288, 96, kMegatron),
    Gpt("megatron-310b", 96, 16384, 128, kMegatron),
    Gpt("megatron-530b", 105, 20480, 128, kMegatron),
    Gpt("megatron-1t", 128, 25600, 160, kMegatron),
    Llama("llama-7b", {32, 4096, 32, 32, 11008, 32000, 4096}),
    Llama("llama-13b", {40, 5120, 40, 40, 13824, 32000, 4096}),
    Llama("llama-70b", {80, 8192, 64, 8, 28672, 32000, 4096}),
    Llama("llama3-8b", {32, 4096, 32, 8, 14336, 128256, 8192}),
    Llama("llama3-70b", {80, 8192, 64, 8, 28672, 128256, 8192}),
    Llama("llama3-405b", {126, 16384, 128, 8, 53248, 128256, 8192}),
    Mixtral(),
};

double Squared(double x) { return x * x; }

double ForwardLayerFlops(const Transformer& model, double batch) {
  const double tokens = batch * model.sequence;
  const double matrices = AttentionParameters(model) + model.top_k * FeedForwardParameters(model);
  return 2 * tokens * matrices + 4 * batch * Squared(model.sequence) * model.hidden;
}

double ForwardHeadFlops(const Transformer& model, double batch) {
  return 2 * batch * model.sequence * model.hidden * model.vocabulary;
}

}  // namespace

std::span<const Transformer> Transformers() { return kModels; }

absl::StatusOr<Transformer> FindTransformer(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Transformer& model : kModels) {
    if (model.name == name) {
      return model;
    }
    names.push_back(model.name);
  }
  const std::string advice = DidYouMean(name, names);
  return InvalidArgument("no model is called \"%s\"%s", name,
                         advice.empty() ? "; " + OneOf(names) : advice);
}

double AttentionParameters(const Transformer& model) {
  const double key_value = static_cast<double>(model.groups) / model.heads;
  return Squared(model.hidden) * (2 + 2 * key_value);
}

double FeedForwardParameters(const Transformer& model) {
  return (model.gated ? 3.0 : 2.0) * model.hidden * model.feed_forward;
}

double LayerMatrixParameters(const Transformer& model) {
  const double router = model.experts > 1 ? static_cast<double>(model.hidden) * model.experts : 0;
  return AttentionParameters(model) + model.experts * FeedForwardParameters(model) + router;
}

double EmbeddingParameters(const Transformer& model) {
  const double tables = model.tied ? 1 : 2;
  const double positions = model.learned_positions ? model.sequence : 0;
  return (tables * model.vocabulary + positions) * model.hidden;
}

double ParametersOf(const Transformer& model) {
  // A GPT's layer: biases 3h + h + 4h + h, two norms of 2h. A Llama's: two norms of h, no biases.
  const double vectors = model.gated ? 2.0 * model.hidden : 13.0 * model.hidden;
  return model.layers * (LayerMatrixParameters(model) + vectors) + EmbeddingParameters(model);
}

double ModelFlops(const Transformer& model, double batch) {
  return 3 * (model.layers * ForwardLayerFlops(model, batch) + ForwardHeadFlops(model, batch));
}

double FullRecomputeFlops(const Transformer& model, double batch) {
  return ModelFlops(model, batch) + model.layers * ForwardLayerFlops(model, batch);
}

double SelectiveRecomputeFlops(const Transformer& model, double batch) {
  return ModelFlops(model, batch) +
         model.layers * 12.0 * batch * Squared(model.sequence) * model.hidden;
}

}  // namespace ranklab::sim
