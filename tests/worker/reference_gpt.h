// The loss of worker/gpt.h in double precision and plain loops, forward only: its gradients are
// central differences.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/compute/reference_operations.h"
#include "worker/gpt_layout.h"

namespace ranklab::worker {

// Sum of losses over the targets of tokens and labels (samples, context); parameters as GptLayout
// lays them out.
inline double ReferenceGptLoss(const GptShape& shape, const std::vector<double>& parameters,
                               const std::vector<std::int32_t>& tokens,
                               const std::vector<std::int32_t>& labels) {
  namespace reference = compute::reference;
  using reference::Doubles;
  using enum GptBlockTensor;
  const GptLayout layout(shape);
  const auto of = [&](const TensorPlace& place) {
    return Doubles(parameters.begin() + place.begin,
                   parameters.begin() + place.begin + place.size());
  };
  const auto add = [](Doubles a, const Doubles& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] += b[i];
    }
    return a;
  };
  const int hidden = shape.spec.hidden;
  const int context = shape.spec.context;
  const reference::Sequences sequences{.samples = static_cast<int>(tokens.size()) / context,
                                       .length = context,
                                       .heads = shape.spec.heads,
                                       .width = hidden / shape.spec.heads};
  const Doubles table = of(layout.token_table());
  const Doubles positions = of(layout.position_table());
  Doubles x;
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    for (int i = 0; i < hidden; ++i) {
      x.push_back(table[tokens[row] * hidden + i] + positions[row % context * hidden + i]);
    }
  }
  for (int block = 0; block < shape.spec.layers; ++block) {
    const auto tensor = [&](GptBlockTensor name) { return of(layout.Block(block, name)); };
    const Doubles qkv =
        reference::Linear(reference::LayerNorm(x, tensor(kNorm1Gain), tensor(kNorm1Bias)),
                          tensor(kQkvWeight), tensor(kQkvBias), hidden);
    x = add(x, reference::Linear(reference::CausalAttention(sequences, qkv),
                                 tensor(kProjectionWeight), tensor(kProjectionBias), hidden));
    Doubles expanded =
        reference::Linear(reference::LayerNorm(x, tensor(kNorm2Gain), tensor(kNorm2Bias)),
                          tensor(kExpandWeight), tensor(kExpandBias), hidden);
    for (double& value : expanded) {
      value = reference::Gelu(value);
    }
    x = add(
        x, reference::Linear(expanded, tensor(kContractWeight), tensor(kContractBias), 4 * hidden));
  }
  const Doubles normal = reference::LayerNorm(x, of(layout.final_gain()), of(layout.final_bias()));
  return reference::CrossEntropy(reference::Linear(normal, of(layout.head()), {}, hidden), labels);
}

}  // namespace ranklab::worker
