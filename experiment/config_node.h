// A lab file's tree as a value: what the reader merges, sweeps and overrides before it becomes a
// LabSpec. Knows nothing of YAML's syntax except how to print itself on one line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ranklab::experiment {

struct ConfigNode {
  enum class Kind : std::uint8_t { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  std::string text{};                                           // of a scalar
  std::vector<ConfigNode> items{};                              // of a list
  std::vector<std::pair<std::string, ConfigNode>> fields = {};  // of a map, keys distinct
  int line = 0;                                                 // in the file, from 1
  int override_index = -1;  // which --set it came from; -1: the file

  bool is_map() const { return kind == Kind::kMap; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_scalar() const { return kind == Kind::kScalar; }

  // A map's field, or null.
  const ConfigNode* Find(std::string_view key) const;
  ConfigNode* Find(std::string_view key);

  // Replaces or adds a field; a node that is not a map becomes one.
  void Set(std::string_view key, ConfigNode value);
  void Remove(std::string_view key);
};

// "train.steps" -> {"train", "steps"}.
std::vector<std::string> SplitPath(std::string_view path);

// The node at a path, or the deepest ancestor that there is: the best place to point at.
const ConfigNode& Locate(const ConfigNode& root, std::string_view path);

// `overlay` acts on `base`, a tree of the lab's sections: maps merge key by key, all else replaces.
// Three keys displace others: train.global_batch and train.batch_per_worker displace each other; a
// `kind` in model or data replaces the section; a `kind` in exchange drops staleness, order and
// algorithm, which belong to the kind, and keeps the rest (bucket, transport, ...).
void MergeInto(ConfigNode& base, const ConfigNode& overlay);

// {a: {b: value}} from "a.b".
ConfigNode Nest(std::string_view path, ConfigNode value);

// On one line, as YAML's flow style: "{kind: ps, staleness: 2}".
std::string Render(const ConfigNode& node);

// How a message shows a value: "\"ring\"", "a list", "a map", "empty".
std::string Show(const ConfigNode& node);

// "labs/x.yaml:12: message" or "--set train.steps=0: message".
struct ConfigSource {
  std::string file{};
  std::vector<std::string> overrides{};

  std::string Where(const ConfigNode& node) const;
};

}  // namespace ranklab::experiment
