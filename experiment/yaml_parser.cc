#include "experiment/yaml_parser.h"

#include <sstream>
#include <utility>
#include <vector>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "core/check.h"
#include "core/status.h"

namespace ranklab::experiment {
namespace {

// What is wrong and where, thrown through yaml-cpp's parser and caught below.
struct Refusal {
  int line;
  std::string what;
};

// Builds the tree from events: an alias never becomes a node, so nothing can expand.
class TreeBuilder final : public YAML::EventHandler {
 public:
  // Without line numbers, nodes belong to no file: their line is 0.
  explicit TreeBuilder(bool line_numbers) : line_numbers_(line_numbers) {}

  ConfigNode Take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    RefuseAnchor(mark, anchor);
    Place({.line = LineOf(mark)});
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refusal{LineOf(mark), "an alias (*name); write the value out"};
  }

  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                const std::string& value) override {
    RefuseAnchor(mark, anchor);
    if (!open_.empty() && open_.back().node.is_map() && !open_.back().has_key) {
      TakeKey(mark, value);
      return;
    }
    Place({.kind = ConfigNode::Kind::kScalar, .text = value, .line = LineOf(mark)});
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, anchor, ConfigNode::Kind::kList);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, anchor, ConfigNode::Kind::kMap);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapEnd() override { Close(); }

 private:
  struct OpenNode {
    ConfigNode node;
    std::string key{};  // of a map: whose value comes next
    bool has_key = false;
  };

  int LineOf(const YAML::Mark& mark) const { return line_numbers_ ? mark.line + 1 : 0; }

  void RefuseAnchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    if (anchor != 0) {
      throw Refusal{LineOf(mark), "an anchor (&name); write the value out where it is needed"};
    }
  }

  void TakeKey(const YAML::Mark& mark, const std::string& key) {
    OpenNode& map = open_.back();
    if (map.node.Find(key) != nullptr) {
      throw Refusal{LineOf(mark), "key \"" + key + "\" stands twice in one map"};
    }
    map.key = key;
    map.has_key = true;
  }

  void Open(const YAML::Mark& mark, YAML::anchor_t anchor, ConfigNode::Kind kind) {
    RefuseAnchor(mark, anchor);
    if (!open_.empty() && open_.back().node.is_map() && !open_.back().has_key) {
      throw Refusal{LineOf(mark), "a list or map as a key; keys are words"};
    }
    if (open_.size() >= static_cast<std::size_t>(kLabDepthLimit)) {
      throw Refusal{LineOf(mark),
                    "deeper than " + std::to_string(kLabDepthLimit) + " lists and maps"};
    }
    open_.push_back({.node = {.kind = kind, .line = LineOf(mark)}});
  }

  void Close() {
    RANKLAB_CHECK(!open_.empty());
    ConfigNode node = std::move(open_.back().node);
    open_.pop_back();
    Place(std::move(node));
  }

  void Place(ConfigNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    OpenNode& parent = open_.back();
    if (parent.node.is_list()) {
      parent.node.items.push_back(std::move(node));
      return;
    }
    if (!parent.has_key) {
      throw Refusal{node.line, "an empty key"};
    }
    parent.node.fields.emplace_back(std::exchange(parent.key, {}), std::move(node));
    parent.has_key = false;
  }

  bool line_numbers_;
  ConfigNode root_;
  std::vector<OpenNode> open_;
};

// Bytes of the sequence that starts at `at`, 0 if it is not UTF-8. yaml-cpp replaces what is not;
// a file that is not text should be refused instead.
std::size_t Utf8Length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(at);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xc2 && first < 0xe0 ? 2
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0U) != 0x80U) {
      return 0;
    }
  }
  return length;
}

absl::Status CheckText(std::string_view text, std::string_view where) {
  if (text.size() > kLabTextLimit) {
    return InvalidArgument("%s: %d bytes; at most %d", where, text.size(), kLabTextLimit);
  }
  int line = 1;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = Utf8Length(text, at);
    if (length == 0 || text[at] == '\0') {
      return InvalidArgument("%s:%d: not text in UTF-8 (byte 0x%02x)", where, line,
                             static_cast<unsigned char>(text[at]));
    }
    line += text[at] == '\n' ? 1 : 0;
    at += length;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ConfigNode> ParseYaml(std::string_view text, std::string_view where,
                                     bool line_numbers) {
  RETURN_IF_ERROR(CheckText(text, where));
  const auto refuse = [&](int line, std::string_view what) {
    return line > 0 ? InvalidArgument("%s:%d: %s", where, line, what)
                    : InvalidArgument("%s: %s", where, what);
  };
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder builder(line_numbers);
    if (!parser.HandleNextDocument(builder)) {
      return refuse(0, "empty");
    }
    ConfigNode root = builder.Take();
    TreeBuilder next(line_numbers);
    if (parser.HandleNextDocument(next)) {
      return refuse(0, "more than one document (---); a lab is one");
    }
    return root;
  } catch (const Refusal& refusal) {
    return refuse(refusal.line, refusal.what);
  } catch (const YAML::Exception& error) {
    return refuse(line_numbers ? error.mark.line + 1 : 0, "not YAML: " + error.msg);
  }
}

}  // namespace ranklab::experiment
