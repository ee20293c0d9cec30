// Data sets that were loaded before, by what they are made from.
#pragma once

#include <map>
#include <string>

#include <absl/status/statusor.h>

#include "worker/dataset.h"

namespace ranklab::worker {

// For one thread at a time. What Load returns stays valid as long as the cache.
class DatasetCache {
 public:
  // Relative paths of `spec` start at the folder of `lab_file`. Errors: as LoadDataset.
  absl::StatusOr<const Dataset*> Load(const experiment::DataSpec& spec,
                                      const std::string& lab_file);

 private:
  std::map<std::string, Dataset> datasets_;
};

}  // namespace ranklab::worker
