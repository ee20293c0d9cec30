#include "worker/evaluate.h"

#include <algorithm>
#include <span>
#include <vector>

#include "compute/operations.h"
#include "core/check.h"
#include "core/status.h"
#include "core/xxh3.h"
#include "worker/batch.h"

namespace ranklab::worker {

absl::StatusOr<Evaluation> Evaluate(Model& model, const Split& split) {
  RANKLAB_CHECK(split.samples() >= 1, "an empty split");
  compute::LossSum sum;
  for (std::int64_t first = 0; first < split.samples(); first += model.max_samples()) {
    const std::int64_t samples = std::min(model.max_samples(), split.samples() - first);
    Split part;  // a view writes through its pointer, a split is read only: copy the part
    part.Append(split, first, first + samples);
    const Batch batch = BatchOf(part, 0, samples);
    for (int layer = 0; layer < model.layer_count(); ++layer) {
      RETURN_IF_ERROR(model.ForwardLayer(layer, batch));
    }
    ASSIGN_OR_RETURN(const compute::LossSum loss, model.Loss(batch, /*scale=*/1.0F));
    sum.loss += loss.loss;
    sum.correct += loss.correct;
    sum.targets += loss.targets;
  }
  if (sum.targets == 0) {
    return InvalidArgument("%d samples without any target", split.samples());
  }
  const auto count = static_cast<double>(sum.targets);
  return Evaluation{.loss = sum.loss / count, .accuracy = static_cast<double>(sum.correct) / count};
}

absl::StatusOr<std::string> ParamHash(Model& model) {
  std::vector<float> values(static_cast<std::size_t>(model.parameter_count()));
  RETURN_IF_ERROR(CopyToHost(model.parameters(), compute::HostView(std::span(values))));
  const XXH128_hash_t hash = XXH3_128bits(values.data(), values.size() * sizeof(float));
  return absl::StrFormat("%016x%016x", hash.high64, hash.low64);
}

}  // namespace ranklab::worker
