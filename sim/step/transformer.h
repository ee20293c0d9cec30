// A transformer by its shape: what a training step's cost and memory are computed from.
// Letters of the formulas: L layers, h hidden, a heads, s sequence, V vocabulary, B global batch.
#pragma once

#include <span>
#include <string_view>

#include <absl/status/statusor.h>

namespace ranklab::sim {

struct Transformer {
  std::string_view name{};
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int groups = 0;  // of keys and values; as many as heads without grouped queries
  int feed_forward = 0;
  int vocabulary = 0;
  int sequence = 0;
  bool gated = false;   // SwiGLU: three matrices in the feed-forward part instead of two
  bool dropout = true;  // masks are kept for the backward pass
  bool tied = true;     // the head is the embedding's matrix
  bool learned_positions = true;
  int experts = 1;  // feed-forward parts a layer
  int top_k = 1;    // experts a token goes through
  std::string_view source{};
};

std::span<const Transformer> Transformers();  // presets: GPT, Megatron and Llama sizes

// Errors: InvalidArgument, with the nearest name.
absl::StatusOr<Transformer> FindTransformer(std::string_view name);

// Weights of one layer's matrices, biases and norms left out: 12 h^2 in a GPT.
double LayerMatrixParameters(const Transformer& model);
// Of the attention part alone, and of one expert's feed-forward part.
double AttentionParameters(const Transformer& model);
double FeedForwardParameters(const Transformer& model);
// Embedding, positions and, if it is not tied, the head.
double EmbeddingParameters(const Transformer& model);
// All of them with biases and norms; of a GPT 12 L h^2 (1 + 13/(12h) + (V+s)/(12Lh)).
// Source: Narayanan et al., SC 2021, section 5.1.
double ParametersOf(const Transformer& model);

// Floating point operations of a step with `batch` sequences, the attention's lower half counted as
// if it were full. Of a GPT: 72 B s L h^2 (1 + s/(6h) + V/(12hL)) for the model, forward and
// backward; 96 B s L h^2 (1 + s/(6h) + V/(16Lh)) with everything recomputed. Source: Narayanan et
// al., SC 2021.
double ModelFlops(const Transformer& model, double batch);
double FullRecomputeFlops(const Transformer& model, double batch);
// With the attention's core recomputed, as Korthikanti et al. count hardware FLOPs: s/(3h) instead
// of s/(6h), three times the core's forward products.
double SelectiveRecomputeFlops(const Transformer& model, double batch);

}  // namespace ranklab::sim
