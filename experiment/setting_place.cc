#include "experiment/setting_place.h"

#include <algorithm>

#include "experiment/config_node.h"
#include "experiment/yaml_parser.h"

namespace ranklab::experiment {
namespace {

const ConfigNode* FindPath(const ConfigNode* node, std::string_view path) {
  for (const std::string& key : SplitPath(path)) {
    node = node == nullptr ? nullptr : node->Find(key);
  }
  return node;
}

const ConfigNode* Child(const ConfigNode* node, std::string_view key) {
  return node == nullptr ? nullptr : node->Find(key);
}

// `path` itself, or a map around it.
bool Sets(std::string_view setting, std::string_view path) {
  return path == setting || (path.starts_with(setting) && path[setting.size()] == '.');
}

// The value that the cell's sweep chose for `path`; null: it is not swept.
const ConfigNode* InSweep(const ConfigNode* sweep, const Cell& cell, std::string_view path) {
  for (const auto& [swept, chosen] : cell.settings) {
    const ConfigNode* values = Sets(swept, path) ? Child(sweep, swept) : nullptr;
    if (values == nullptr) {
      continue;
    }
    const auto value =
        std::find_if(values->items.begin(), values->items.end(),
                     [&text = chosen](const ConfigNode& item) { return Render(item) == text; });
    return value == values->items.end() ? values : &*value;
  }
  return nullptr;
}

}  // namespace

// In the order in which settings displace each other: --set, sweep, the part's own, the lab's.
std::string PlaceOf(const Lab& lab, const Cell& cell, std::string_view path) {
  for (auto change = lab.overrides.rbegin(); change != lab.overrides.rend(); ++change) {
    if (Sets(std::string_view(*change).substr(0, change->find('=')), path)) {
      return "--set " + *change;
    }
  }
  const absl::StatusOr<ConfigNode> root = ParseYaml(lab.text, lab.file);
  if (!root.ok()) {
    return lab.file;
  }
  const ConfigNode* parts = root->Find("parts");
  const auto index = static_cast<std::size_t>(cell.part);
  const ConfigNode* part =
      parts != nullptr && index < parts->items.size() ? &parts->items[index] : nullptr;
  const ConfigNode* own_sweep = Child(part, "sweep");
  const ConfigNode* sweep = own_sweep != nullptr ? own_sweep : root->Find("sweep");
  for (const ConfigNode* found :
       {InSweep(sweep, cell, path), FindPath(Child(part, "with"), path), FindPath(&*root, path)}) {
    if (found != nullptr) {
      return ConfigSource{.file = lab.file, .overrides = lab.overrides}.Where(*found);
    }
  }
  return lab.file;
}

}  // namespace ranklab::experiment
