#include "worker/text.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "compute/operations.h"
#include "core/check.h"
#include "core/status.h"

namespace ranklab::worker {
namespace {

constexpr int kBytes = 256;
constexpr std::int64_t kTestShare = 10;  // one of so many samples

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::error_code error;
  std::ifstream file(path, std::ios::binary);
  if (!std::filesystem::is_regular_file(path, error) || !file.is_open()) {
    return NotFound("%s: %s", path, error ? error.message() : "no file that can be read");
  }
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  if (size > kMaxTextBytes) {
    return InvalidArgument("%s: %d bytes; at most %d", path, size, kMaxTextBytes);
  }
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

absl::StatusOr<Dataset> LoadText(const experiment::DataSpec& spec, const std::string& lab_folder) {
  RANKLAB_CHECK(spec.context >= 1, "context %d", spec.context);
  const std::string path = std::filesystem::path(lab_folder) / spec.file;
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  const std::int64_t targets = std::ssize(bytes) - 1;
  const std::int64_t samples = (targets + spec.context - 1) / spec.context;
  if (samples < 2) {
    return InvalidArgument("%s: %d bytes; at least %d, two samples of model.context %d and a byte",
                           path, bytes.size(), spec.context + 2, spec.context);
  }
  Split all;
  all.labels_per_sample = spec.context;
  for (std::int64_t i = 0; i < samples * spec.context; ++i) {
    const bool target = i < targets;
    all.tokens.push_back(target ? static_cast<unsigned char>(bytes[i]) : 0);
    all.labels.push_back(target ? static_cast<unsigned char>(bytes[i + 1]) : compute::kNoTarget);
  }
  const std::int64_t held_out = std::max<std::int64_t>(1, samples / kTestShare);
  Dataset data{.inputs = spec.context, .classes = kBytes, .train = {}, .test = {}};
  data.train.Append(all, 0, samples - held_out);
  data.test.Append(all, samples - held_out, samples);
  return data;
}

}  // namespace ranklab::worker
