#include "experiment/fields.h"

#include <algorithm>
#include <utility>

#include "core/nearest.h"
#include "core/status.h"
#include "experiment/quantity.h"

namespace ranklab::experiment {
namespace {

std::string WordsOf(const IntegerRange& range) {
  if (range.most >= std::numeric_limits<std::int32_t>::max()) {
    return absl::StrFormat("a whole number, at least %d", range.least);
  }
  return absl::StrFormat("a whole number from %d to %d", range.least, range.most);
}

std::string WordsOf(const NumberRange& range) {
  const std::string from =
      absl::StrFormat("a number %s %g", range.open ? "above" : "of at least", range.least);
  return absl::StrFormat("%s and %s %g", from, range.open_end ? "below" : "up to", range.most);
}

constexpr std::string_view kDurationWords = "a duration with its unit, such as 500ms, 5us or 2s";
constexpr std::string_view kSizeWords = "a size with its unit, such as 25MiB, 64KiB or 1MB";
constexpr std::string_view kRateWords = "a rate with its unit, such as 10Gbit/s or 25GB/s";

}  // namespace

std::string Listed(std::span<const std::string_view> words) {
  std::string list;
  for (const std::string_view word : words) {
    list += (list.empty() ? "" : ", ") + std::string(word);
  }
  return list;
}

absl::Status Complain(const ConfigSource& source, const ConfigNode& node, std::string_view what) {
  return InvalidArgument("%s: %s", source.Where(node), what);
}

absl::Status WrongValue(const ConfigSource& source, const ConfigNode& node, std::string_view path,
                        std::string_view what_would_be_right) {
  return InvalidArgument("%s: %s is %s; %s", source.Where(node), path, Show(node),
                         what_would_be_right);
}

absl::Status UnknownKey(const ConfigSource& source, const ConfigNode& node, std::string_view path,
                        std::span<const std::string_view> known) {
  const std::size_t dot = path.rfind('.');
  const std::string_view key = dot == std::string_view::npos ? path : path.substr(dot + 1);
  std::string advice = DidYouMean(key, known);
  if (advice.empty()) {
    advice = "; one of " + Listed(known);
  }
  const std::string where = source.Where(node);
  // An override's text already begins with the path.
  if (node.override_index >= 0 && where.starts_with("--set " + std::string(path) + "=")) {
    return InvalidArgument("%s: unknown key%s", where, advice);
  }
  return InvalidArgument("%s: %s: unknown key%s", where, path, advice);
}

Fields::Fields(const ConfigSource& source, const ConfigNode* node, std::string path)
    : source_(source), node_(node), path_(std::move(path)) {
  if (node_ != nullptr && !node_->is_map()) {
    mistake_ = WrongValue(source_, *node_, path_, "a map of its keys");
    node_ = nullptr;
  }
}

const ConfigNode* Fields::Find(std::string_view key) const {
  return node_ == nullptr ? nullptr : node_->Find(key);
}

std::string Fields::PathOf(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

void Fields::Fail(absl::Status mistake) {
  if (mistake_.ok()) {
    mistake_ = std::move(mistake);
  }
}

void Fields::Fail(std::string_view key, std::string_view what_would_be_right) {
  if (const ConfigNode* node = Find(key)) {
    Fail(WrongValue(source_, *node, PathOf(key), what_would_be_right));
  } else {
    Require(key, what_would_be_right);
  }
}

const ConfigNode* Fields::Take(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
    known_.push_back(key);
  }
  return Find(key);
}

const std::string* Fields::Scalar(std::string_view key, std::string_view what_would_be_right) {
  const ConfigNode* node = Take(key);
  if (node == nullptr) {
    return nullptr;
  }
  if (!node->is_scalar()) {
    Fail(key, what_would_be_right);
    return nullptr;
  }
  return &node->text;
}

void Fields::Text(std::string_view key, std::string& value) {
  if (const std::string* text = Scalar(key, "a text")) {
    value = *text;
  }
}

void Fields::OneOf(std::string_view key, std::span<const std::string_view> names,
                   std::string& value) {
  const std::string words = "one of " + Listed(names);
  const std::string* text = Scalar(key, words);
  if (text == nullptr) {
    return;
  }
  if (std::find(names.begin(), names.end(), *text) == names.end()) {
    Fail(key, words);
    return;
  }
  value = *text;
}

void Fields::ReadInteger(std::string_view key, IntegerRange range, std::int64_t& value) {
  const std::string words = WordsOf(range);
  const std::string* text = Scalar(key, words);
  if (text == nullptr) {
    return;
  }
  const std::optional<std::int64_t> number = ParseInteger(*text);
  if (!number || *number < range.least || *number > range.most) {
    Fail(key, words);
    return;
  }
  value = *number;
}

void Fields::Number(std::string_view key, const NumberRange& range, double& value) {
  const std::string words = WordsOf(range);
  const std::string* text = Scalar(key, words);
  if (text == nullptr) {
    return;
  }
  const std::optional<double> number = ParseNumber(*text);
  if (!number || *number < range.least || *number > range.most ||
      (range.open && *number == range.least) || (range.open_end && *number == range.most)) {
    Fail(key, words);
    return;
  }
  value = *number;
}

void Fields::Flag(std::string_view key, bool& value) {
  const std::string* text = Scalar(key, "true or false");
  if (text == nullptr) {
    return;
  }
  if (*text != "true" && *text != "false") {
    Fail(key, "true or false");
    return;
  }
  value = *text == "true";
}

void Fields::Duration(std::string_view key, Nanos& value) {
  const std::string* text = Scalar(key, kDurationWords);
  if (text == nullptr) {
    return;
  }
  if (const auto duration = ParseDuration(*text)) {
    value = *duration;
  } else {
    Fail(key, kDurationWords);
  }
}

void Fields::Size(std::string_view key, Bytes& value) {
  const std::string* text = Scalar(key, kSizeWords);
  if (text == nullptr) {
    return;
  }
  const auto size = ParseSize(*text);
  if (size && *size > 0) {
    value = *size;
  } else {
    Fail(key, kSizeWords);
  }
}

void Fields::Rate(std::string_view key, Bandwidth& value) {
  const std::string* text = Scalar(key, kRateWords);
  if (text == nullptr) {
    return;
  }
  if (const auto rate = ParseBandwidth(*text)) {
    value = *rate;
  } else {
    Fail(key, kRateWords);
  }
}

void Fields::Widths(std::string_view key, std::vector<int>& values) {
  constexpr std::string_view kWords = "a list of widths, such as [64, 512, 10]";
  constexpr std::int64_t kWidest = 1 << 20;
  const ConfigNode* node = Take(key);
  if (node == nullptr) {
    return;
  }
  if (!node->is_list()) {
    Fail(key, kWords);
    return;
  }
  values.clear();
  for (const ConfigNode& item : node->items) {
    const auto width = item.is_scalar() ? ParseInteger(item.text) : std::nullopt;
    if (!width || *width < 1 || *width > kWidest) {
      Fail(WrongValue(source_, item, PathOf(key) + "[" + std::to_string(values.size()) + "]",
                      absl::StrFormat("a whole number from 1 to %d", kWidest)));
      return;
    }
    values.push_back(static_cast<int>(*width));
  }
}

void Fields::Require(std::string_view key, std::string_view what_would_be_right) {
  if (Has(key)) {
    return;
  }
  const std::string where = node_ == nullptr ? source_.file : source_.Where(*node_);
  Fail(InvalidArgument("%s: %s is missing; %s", where, PathOf(key), what_would_be_right));
}

void Fields::OnlyFor(std::string_view key, bool applies, std::string_view owner,
                     std::string_view kind) {
  const ConfigNode* node = Take(key);
  if (node != nullptr && !applies) {
    Fail(InvalidArgument("%s: %s goes with kind %s, not %s", source_.Where(*node), PathOf(key),
                         owner, kind));
  }
}

absl::Status Fields::Finish() const {
  if (node_ != nullptr) {
    for (const auto& [key, value] : node_->fields) {
      if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
        return UnknownKey(source_, value, PathOf(key), known_);
      }
    }
  }
  return mistake_;
}

}  // namespace ranklab::experiment
