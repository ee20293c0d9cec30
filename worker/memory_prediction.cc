#include "worker/memory_prediction.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <variant>

#include "worker/lab_optimizer.h"
#include "worker/precision.h"

namespace ranklab::worker {

using compute::MemoryKind;

MemoryPrediction PredictMemory(const experiment::LabSpec& spec, const Model& model) {
  const Bytes element = SizeOf(compute::DType::kFloat32);
  const Bytes stored = SizeOf(StorageOf(spec));
  const bool mixed = stored != element;
  const std::int64_t parameters = model.parameter_count();
  MemoryPrediction predicted;
  const auto of = [&predicted](MemoryKind kind) -> std::optional<Bytes>& {
    return predicted.at(static_cast<std::size_t>(kind));
  };
  of(MemoryKind::kWeights) = (element + (mixed ? stored : 0)) * parameters;
  of(MemoryKind::kGradients) = element * (parameters + kGradientTail);
  const std::string optimizer = WorkerUpdateOf(spec).optimizer;
  if (optimizer.empty() || optimizer == "sgd") {
    of(MemoryKind::kOptimizer) = 0;
  } else if (optimizer == "momentum") {
    of(MemoryKind::kOptimizer) = element * parameters;
  } else if (optimizer == "adamw") {
    of(MemoryKind::kOptimizer) = 2 * element * parameters;
  }
  if (const Bytes wire = SizeOf(WireOf(spec)); wire != element) {
    of(MemoryKind::kCommunication) = wire * parameters;
  }
  if (const auto* mlp = std::get_if<experiment::MlpSpec>(&spec.model)) {
    const auto outputs = mlp->layers.begin() + 1;
    const std::int64_t kept = std::accumulate(outputs, mlp->layers.end(), std::int64_t{0});
    const std::int64_t widest = *std::max_element(outputs, mlp->layers.end());
    of(MemoryKind::kActivations) = stored * model.max_samples() * (kept + 2 * widest);
    const Bytes rounded = mixed ? stored * mlp->layers.front() : 0;
    of(MemoryKind::kData) = model.max_samples() * (element * (mlp->layers.front() + 1) + rounded);
  }
  if (const auto* gpt = std::get_if<experiment::GptSpec>(&spec.model)) {
    const std::int64_t rows = model.max_samples() * gpt->context;
    const std::int64_t hidden = gpt->hidden;
    const std::int64_t blocks = spec.train.recompute ? 1 : gpt->layers;
    const std::int64_t values =
        (gpt->layers + 8) * hidden + blocks * 15 * hidden + 2 * spec.data.Vocabulary();
    const std::int64_t statistics = blocks * (gpt->heads + 4) + 2;
    of(MemoryKind::kActivations) = rows * (stored * values + element * statistics);
    of(MemoryKind::kData) = element * rows * 2;
  }
  return predicted;
}

}  // namespace ranklab::worker
