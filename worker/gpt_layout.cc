#include "worker/gpt_layout.h"

#include <cmath>

#include "core/check.h"
#include "worker/streams.h"

namespace ranklab::worker {
namespace {

constexpr double kDeviation = 0.02;

}  // namespace

GptLayout::GptLayout(const GptShape& shape) : tied_(shape.spec.tied) {
  const experiment::GptSpec& spec = shape.spec;
  RANKLAB_CHECK(spec.layers >= 1 && spec.hidden >= 1 && spec.context >= 1 && shape.vocabulary >= 1);
  RANKLAB_CHECK(spec.heads >= 1 && spec.hidden % spec.heads == 0, "%d in %d heads", spec.hidden,
                spec.heads);
  first_.push_back(0);
  Add("wte.weight", shape.vocabulary, spec.hidden, kDeviation, 0);
  Add("wpe.weight", spec.context, spec.hidden, kDeviation, 0);
  for (int block = 0; block < spec.layers; ++block) {
    first_.push_back(places_.size());
    AddBlock(block, shape);
  }
  first_.push_back(places_.size());
  Add("ln_f.weight", spec.hidden, 1, 0, 1);
  Add("ln_f.bias", spec.hidden, 1, 0, 0);
  if (!tied_) {
    Add("lm_head.weight", shape.vocabulary, spec.hidden, kDeviation, 0);
  }
  first_.push_back(places_.size());
}

void GptLayout::Add(const std::string& name, std::int64_t rows, std::int64_t columns,
                    double deviation, float initial) {
  const std::int64_t begin = places_.empty() ? 0 : places_.back().begin + places_.back().size();
  places_.push_back({name, rows, columns, begin, deviation, initial});
}

// In the order of GptBlockTensor.
void GptLayout::AddBlock(int block, const GptShape& shape) {
  const std::int64_t hidden = shape.hidden();
  const std::int64_t expanded = shape.expanded();
  const double residual = kDeviation / std::sqrt(2.0 * shape.spec.layers);
  const std::string prefix = "h." + std::to_string(block) + ".";
  Add(prefix + "ln_1.weight", hidden, 1, 0, 1);
  Add(prefix + "ln_1.bias", hidden, 1, 0, 0);
  Add(prefix + "attn.c_attn.weight", 3 * hidden, hidden, kDeviation, 0);
  Add(prefix + "attn.c_attn.bias", 3 * hidden, 1, 0, 0);
  Add(prefix + "attn.c_proj.weight", hidden, hidden, residual, 0);
  Add(prefix + "attn.c_proj.bias", hidden, 1, 0, 0);
  Add(prefix + "ln_2.weight", hidden, 1, 0, 1);
  Add(prefix + "ln_2.bias", hidden, 1, 0, 0);
  Add(prefix + "mlp.c_fc.weight", expanded, hidden, kDeviation, 0);
  Add(prefix + "mlp.c_fc.bias", expanded, 1, 0, 0);
  Add(prefix + "mlp.c_proj.weight", hidden, expanded, residual, 0);
  Add(prefix + "mlp.c_proj.bias", hidden, 1, 0, 0);
}

std::int64_t GptLayout::ParameterBegin(int layer) const {
  const std::size_t place = first_.at(static_cast<std::size_t>(layer));
  return place < places_.size() ? places_[place].begin
                                : places_.back().begin + places_.back().size();
}

const TensorPlace& GptLayout::Block(int block, GptBlockTensor tensor) const {
  const std::size_t first = first_.at(static_cast<std::size_t>(block) + 1);
  return places_.at(first + static_cast<std::size_t>(tensor));
}

void GptLayout::AppendInitialValues(int layer, std::uint64_t seed,
                                    std::vector<float>& values) const {
  Random random = StreamOf(seed, Stream::kInitialWeights).Split(static_cast<std::uint64_t>(layer));
  for (std::size_t i = first_.at(layer); i < first_.at(layer + 1); ++i) {
    const TensorPlace& place = places_[i];
    for (std::int64_t element = 0; element < place.size(); ++element) {
      values.push_back(place.deviation > 0 ? static_cast<float>(random.Normal() * place.deviation)
                                           : place.initial);
    }
  }
}

}  // namespace ranklab::worker
