#include "cli/read_record.h"

#include <fstream>
#include <iterator>
#include <utility>

#include "core/status.h"

namespace ranklab::cli {

absl::StatusOr<experiment::RunSummary> ReadRecord(const std::string& folder) {
  const std::string path = folder + "/summary.json";
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return NotFound("%s cannot be read; name a folder that `ranklab run` left", path);
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  auto summary = experiment::RunSummaryFromJson(text);
  return summary.ok() ? std::move(summary) : Annotate(summary.status(), path);
}

}  // namespace ranklab::cli
