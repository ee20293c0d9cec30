#include "experiment/lab_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include <xxhash.h>

#include "core/status.h"
#include "experiment/config_node.h"
#include "experiment/expansion.h"
#include "experiment/scenario_reader.h"
#include "experiment/yaml_parser.h"

namespace ranklab::experiment {
namespace {

// XXH3, 128 bits, of the text and the overrides, each ended by a byte that neither can contain.
std::string HashOf(std::string_view text, std::span<const std::string> overrides) {
  std::string all(text);
  all += '\0';
  for (const std::string& change : overrides) {
    all += change;
    all += '\0';
  }
  const XXH128_hash_t hash = XXH3_128bits(all.data(), all.size());
  return absl::StrFormat("%016x%016x", hash.high64, hash.low64);
}

// Messages quote the file, and a value or key may span lines.
absl::Status OnOneLine(const absl::Status& status) {
  std::string line = MessageOf(status);
  std::replace_if(
      line.begin(), line.end(),
      [](char letter) { return static_cast<unsigned char>(letter) < ' '; }, ' ');
  return MakeError(status.code(), "%s", line);
}

}  // namespace

absl::StatusOr<Lab> ReadLab(std::string_view text, std::string_view file,
                            std::span<const std::string> overrides) {
  ASSIGN_OR_RETURN(const ConfigNode root, ParseYaml(text, file));
  const ConfigSource source{.file = std::string(file),
                            .overrides = {overrides.begin(), overrides.end()}};
  Lab lab{.file = source.file,
          .text = std::string(text),
          .hash = HashOf(text, overrides),
          .overrides = source.overrides};
  if (const absl::Status status = ExpandLab(source, root, lab); !status.ok()) {
    return OnOneLine(status);
  }
  return lab;
}

absl::StatusOr<Lab> ReadLabFile(const std::string& path, std::span<const std::string> overrides) {
  std::error_code unknown;  // what cannot be looked at cannot be opened either
  if (std::filesystem::is_directory(path, unknown)) {
    return NotFound("%s is a folder, not a lab file; the path of one, such as labs/compare.yaml",
                    path);
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return NotFound("%s: %s; the path of a lab file, such as labs/compare.yaml", path,
                    std::strerror(errno));
  }
  // One byte past the limit is enough for the parser to refuse it.
  std::string text(kLabTextLimit + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) {
    return NotFound("%s: cannot be read", path);
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  return ReadLab(text, path, overrides);
}

absl::StatusOr<Injection> ReadInjection(std::string_view text) {
  const ConfigSource source{.file = "injection"};
  ASSIGN_OR_RETURN(const ConfigNode node, ParseYaml(text, source.file, false));
  absl::StatusOr<Injection> injection = ReadEntry(source, node, /*path=*/"", EntryFrom::kLive);
  if (!injection.ok()) {
    return OnOneLine(injection.status());
  }
  return injection;
}

}  // namespace ranklab::experiment
