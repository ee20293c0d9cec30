// Where each tensor of a gpt lies in its flat parameters, under which name, and how it begins.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiment/lab_spec.h"

namespace ranklab::worker {

// Everything that shapes depend on. Letters of the shapes below: V vocabulary, C hidden, T context.
struct GptShape {
  experiment::GptSpec spec;
  int vocabulary = 0;

  std::int64_t hidden() const { return spec.hidden; }
  std::int64_t expanded() const { return 4 * std::int64_t{spec.hidden}; }  // of a block's MLP
};

enum class GptBlockTensor : std::uint8_t {
  kNorm1Gain,         // (C)
  kNorm1Bias,         // (C)
  kQkvWeight,         // (3 C, C)
  kQkvBias,           // (3 C)
  kProjectionWeight,  // (C, C)
  kProjectionBias,    // (C)
  kNorm2Gain,         // (C)
  kNorm2Bias,         // (C)
  kExpandWeight,      // (4 C, C)
  kExpandBias,        // (4 C)
  kContractWeight,    // (C, 4 C)
  kContractBias,      // (C)
};

struct TensorPlace {
  std::string name;
  std::int64_t rows = 0, columns = 0;  // a vector: rows, 1
  std::int64_t begin = 0;              // its first element
  double deviation = 0;                // of its normally distributed initial values, or
  float initial = 0;                   // what all of them are, where deviation is 0

  std::int64_t size() const { return rows * columns; }
};

// Layer 0 is the embedding, layers 1 to spec.layers are blocks, the last one is norm and head. The
// names are GPT-2's; weights are (outputs, inputs), as PyTorch's nn.Linear has them. A tied head is
// the token table. Initial values: normal with deviation 0.02, divided by the root of the number of
// residual additions (2 a block) where a matrix writes to the residual stream; gains 1, biases 0.
// Source: Radford et al., "Language models are unsupervised multitask learners", 2019.
class GptLayout {
 public:
  explicit GptLayout(const GptShape& shape);

  int layer_count() const { return static_cast<int>(first_.size()) - 1; }
  std::int64_t parameter_count() const { return ParameterBegin(layer_count()); }
  std::int64_t ParameterBegin(int layer) const;  // also of layer_count(): the end

  const TensorPlace& token_table() const { return places_[0]; }     // (V, C)
  const TensorPlace& position_table() const { return places_[1]; }  // (T, C)
  const TensorPlace& Block(int block, GptBlockTensor tensor) const;
  const TensorPlace& final_gain() const { return places_[first_[first_.size() - 2]]; }      // (C)
  const TensorPlace& final_bias() const { return places_[first_[first_.size() - 2] + 1]; }  // (C)
  const TensorPlace& head() const { return tied_ ? places_.front() : places_.back(); }  // (V, C)

  const std::vector<TensorPlace>& places() const { return places_; }

  // Of one layer, in the order in which they lie; the same for the same seed on every machine.
  void AppendInitialValues(int layer, std::uint64_t seed, std::vector<float>& values) const;

 private:
  void Add(const std::string& name, std::int64_t rows, std::int64_t columns, double deviation,
           float initial);
  void AddBlock(int block, const GptShape& shape);

  bool tied_;
  std::vector<TensorPlace> places_;
  std::vector<std::size_t> first_;  // [layer]: its first place, and the end
};

}  // namespace ranklab::worker
