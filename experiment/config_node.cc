#include "experiment/config_node.h"

#include <algorithm>
#include <array>

#include "core/check.h"

namespace ranklab::experiment {

const ConfigNode* ConfigNode::Find(std::string_view key) const {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [key](const auto& field) { return field.first == key; });
  return found == fields.end() ? nullptr : &found->second;
}

ConfigNode* ConfigNode::Find(std::string_view key) {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [key](const auto& field) { return field.first == key; });
  return found == fields.end() ? nullptr : &found->second;
}

void ConfigNode::Set(std::string_view key, ConfigNode value) {
  if (!is_map()) {
    kind = Kind::kMap;
    text.clear();
    items.clear();
  }
  if (ConfigNode* present = Find(key)) {
    *present = std::move(value);
  } else {
    fields.emplace_back(std::string(key), std::move(value));
  }
}

void ConfigNode::Remove(std::string_view key) {
  std::erase_if(fields, [key](const auto& field) { return field.first == key; });
}

std::vector<std::string> SplitPath(std::string_view path) {
  std::vector<std::string> keys;
  std::size_t begin = 0;
  while (true) {
    const std::size_t dot = path.find('.', begin);
    keys.emplace_back(path.substr(begin, dot - begin));
    if (dot == std::string_view::npos) {
      return keys;
    }
    begin = dot + 1;
  }
}

const ConfigNode& Locate(const ConfigNode& root, std::string_view path) {
  const ConfigNode* node = &root;
  for (const std::string& key : SplitPath(path)) {
    const ConfigNode* next = node->Find(key);
    if (next == nullptr) {
      break;
    }
    node = next;
  }
  return *node;
}

namespace {

void MergeFields(ConfigNode& base, const ConfigNode& overlay) {
  if (!base.is_map() || !overlay.is_map()) {
    base = overlay;
    return;
  }
  for (const auto& [key, value] : overlay.fields) {
    if (ConfigNode* present = base.Find(key)) {
      MergeFields(*present, value);
    } else {
      base.Set(key, value);
    }
  }
}

// What the keys of an overlay push out of the section they act on, before they are merged.
void Displace(std::string_view section, ConfigNode& base, const ConfigNode& overlay) {
  if (section == "train") {
    if (overlay.Find("batch_per_worker") != nullptr) {
      base.Remove("global_batch");
    }
    if (overlay.Find("global_batch") != nullptr) {
      base.Remove("batch_per_worker");
    }
    return;
  }
  if (overlay.Find("kind") == nullptr) {
    return;
  }
  if (section == "model" || section == "data") {
    base.fields.clear();
  } else if (section == "exchange") {
    for (const std::string_view key : std::array{"staleness", "order", "algorithm"}) {
      base.Remove(key);
    }
  }
}

}  // namespace

void MergeInto(ConfigNode& base, const ConfigNode& overlay) {
  RANKLAB_CHECK(overlay.is_map());
  for (const auto& [section, value] : overlay.fields) {
    ConfigNode* present = base.Find(section);
    if (present == nullptr) {
      base.Set(section, value);
      continue;
    }
    Displace(section, *present, value);
    MergeFields(*present, value);
  }
}

ConfigNode Nest(std::string_view path, ConfigNode value) {
  std::vector<std::string> keys = SplitPath(path);
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    ConfigNode parent{
        .kind = ConfigNode::Kind::kMap, .line = value.line, .override_index = value.override_index};
    parent.Set(*key, std::move(value));
    value = std::move(parent);
  }
  return value;
}

namespace {

bool NeedsQuotes(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-/";
  return text.empty() || text.find_first_not_of(kPlain) != std::string::npos || text == "null" ||
         text.starts_with('-') || text == "~";
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    switch (letter) {
      case '"':
      case '\\':
        quoted += '\\';
        quoted += letter;
        break;
      case '\n':
        quoted += "\\n";
        break;
      case '\t':
        quoted += "\\t";
        break;
      default:
        quoted += letter;
    }
  }
  return quoted + '"';
}

}  // namespace

std::string Render(const ConfigNode& node) {
  std::string line;
  switch (node.kind) {
    case ConfigNode::Kind::kNull:
      return "null";
    case ConfigNode::Kind::kScalar:
      return NeedsQuotes(node.text) ? Quoted(node.text) : node.text;
    case ConfigNode::Kind::kList:
      for (const ConfigNode& item : node.items) {
        line += (line.empty() ? "" : ", ") + Render(item);
      }
      return "[" + line + "]";
    case ConfigNode::Kind::kMap:
      for (const auto& [key, value] : node.fields) {
        line += (line.empty() ? "" : ", ") + key + ": " + Render(value);
      }
      return "{" + line + "}";
  }
  RANKLAB_CHECK(false, "node kind %d", static_cast<int>(node.kind));
  return "";
}

std::string Show(const ConfigNode& node) {
  switch (node.kind) {
    case ConfigNode::Kind::kNull:
      return "empty";
    case ConfigNode::Kind::kScalar:
      return '"' + (node.text.size() > 60 ? node.text.substr(0, 60) + "..." : node.text) + '"';
    case ConfigNode::Kind::kList:
      return "a list";
    case ConfigNode::Kind::kMap:
      return "a map";
  }
  RANKLAB_CHECK(false, "node kind %d", static_cast<int>(node.kind));
  return "";
}

std::string ConfigSource::Where(const ConfigNode& node) const {
  if (node.override_index >= 0) {
    return "--set " + overrides.at(static_cast<std::size_t>(node.override_index));
  }
  return node.line > 0 ? file + ":" + std::to_string(node.line) : file;
}

}  // namespace ranklab::experiment
