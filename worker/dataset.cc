#include "worker/dataset.h"

#include <algorithm>

#include "compute/operations.h"
#include "core/status.h"
#include "worker/digits.h"
#include "worker/grammar.h"
#include "worker/idx.h"
#include "worker/synthetic.h"
#include "worker/text.h"

namespace ranklab::worker {

std::int64_t Split::CountTargets() const {
  return std::ssize(labels) - std::count(labels.begin(), labels.end(), compute::kNoTarget);
}

void Split::Append(const Split& other, std::int64_t first, std::int64_t last) {
  const auto append = [first, last](const auto& from, std::int64_t each, auto& to) {
    to.insert(to.end(), from.begin() + first * each, from.begin() + last * each);
  };
  labels_per_sample = other.labels_per_sample;
  append(other.inputs, other.inputs.empty() ? 0 : other.width(), inputs);
  append(other.tokens, other.tokens.empty() ? 0 : other.width(), tokens);
  append(other.labels, labels_per_sample, labels);
}

absl::StatusOr<Dataset> LoadDataset(const experiment::DataSpec& spec,
                                    const std::string& lab_folder) {
  if (spec.kind == "digits") {
    return LoadDigits(spec.split_seed);
  }
  if (spec.kind == "idx") {
    return LoadIdx(spec, lab_folder);
  }
  if (spec.kind == "synthetic") {
    return MakeSynthetic(spec);
  }
  if (spec.kind == "grammar") {
    return MakeGrammar(spec);
  }
  if (spec.kind == "text") {
    return LoadText(spec, lab_folder);
  }
  return InvalidArgument("data.kind is \"%s\"; one of digits, idx, synthetic, grammar, text",
                         spec.kind);
}

}  // namespace ranklab::worker
