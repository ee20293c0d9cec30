#include "worker/dataset_cache.h"

#include <utility>

#include "core/status.h"

namespace ranklab::worker {
namespace {

std::string FolderOf(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? "." : file.substr(0, slash);
}

}  // namespace

absl::StatusOr<const Dataset*> DatasetCache::Load(const experiment::DataSpec& spec,
                                                  const std::string& lab_file) {
  const std::string key = spec.Key();
  const auto found = datasets_.find(key);
  if (found != datasets_.end()) {
    return &found->second;
  }
  ASSIGN_OR_RETURN(Dataset dataset, LoadDataset(spec, FolderOf(lab_file)));
  return &datasets_.emplace(key, std::move(dataset)).first->second;
}

}  // namespace ranklab::worker
