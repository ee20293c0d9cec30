#include "worker/dataset.h"

#include "core/status.h"
#include "worker/digits.h"
#include "worker/idx.h"
#include "worker/synthetic.h"

namespace ranklab::worker {

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
  return InvalidArgument("data.kind is \"%s\"; one of digits, idx, synthetic", spec.kind);
}

}  // namespace ranklab::worker
