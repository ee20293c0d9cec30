// Reads the fields of one map of a lab file into typed values. The first mistake is kept and
// reported by Finish, so that a section reads as a list of its keys.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>

#include "core/units.h"
#include "experiment/config_node.h"

namespace ranklab::experiment {

struct IntegerRange {
  std::int64_t least = 0;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
};
struct NumberRange {
  double least = 0;
  double most = 1e18;
  bool open = false;      // `least` itself is not in it
  bool open_end = false;  // nor is `most`
};

// "labs/x.yaml:12: exchange.algorithm is "rign"; one of auto, ring".
absl::Status Complain(const ConfigSource& source, const ConfigNode& node, std::string_view what);
absl::Status WrongValue(const ConfigSource& source, const ConfigNode& node, std::string_view path,
                        std::string_view what_would_be_right);
// "labs/x.yaml:12: exchange.algoritm: unknown key; did you mean "algorithm"?".
absl::Status UnknownKey(const ConfigSource& source, const ConfigNode& node, std::string_view path,
                        std::span<const std::string_view> known);

std::string Listed(std::span<const std::string_view> words);  // "a, b, c"

class Fields {
 public:
  // `node` may be null: a section that the file leaves out has no fields. `path` is its name for
  // messages, "exchange". Borrows all but the path; keys must be literals.
  Fields(const ConfigSource& source, const ConfigNode* node, std::string path);

  bool Has(std::string_view key) const { return Find(key) != nullptr; }

  // Each leaves `value` alone when the key is absent, and is a mistake when the value does not fit.
  void Text(std::string_view key, std::string& value);
  void OneOf(std::string_view key, std::span<const std::string_view> names, std::string& value);
  template <typename Integral>
  void Integer(std::string_view key, IntegerRange range, Integral& value) {
    std::int64_t wide = static_cast<std::int64_t>(value);
    if constexpr (sizeof(Integral) < sizeof(std::int64_t)) {
      range.most = std::min<std::int64_t>(range.most, std::numeric_limits<Integral>::max());
    }
    ReadInteger(key, range, wide);
    value = static_cast<Integral>(wide);
  }
  void Number(std::string_view key, const NumberRange& range, double& value);
  void Flag(std::string_view key, bool& value);
  void Duration(std::string_view key, Nanos& value);
  void Size(std::string_view key, Bytes& value);  // above 0
  void Rate(std::string_view key, Bandwidth& value);
  void Widths(std::string_view key, std::vector<int>& values);  // a list of whole numbers above 0

  // The field as it is, for the caller to read; null when absent.
  const ConfigNode* Take(std::string_view key);

  // Absent is a mistake: "train.steps is missing; a whole number, at least 1".
  void Require(std::string_view key, std::string_view what_would_be_right);
  // Present is a mistake unless `applies`: "exchange.staleness goes with kind ps, not collective".
  void OnlyFor(std::string_view key, bool applies, std::string_view owner, std::string_view kind);

  void Fail(absl::Status mistake);  // keeps the first
  void Fail(std::string_view key, std::string_view what_would_be_right);

  const ConfigSource& source() const { return source_; }

  // An unknown key comes before other mistakes: it explains what is missing.
  absl::Status Finish() const;

 private:
  const ConfigNode* Find(std::string_view key) const;
  std::string PathOf(std::string_view key) const;
  // The text of a present scalar, known from now on; null when absent or (a mistake) not a scalar.
  const std::string* Scalar(std::string_view key, std::string_view what_would_be_right);
  void ReadInteger(std::string_view key, IntegerRange range, std::int64_t& value);

  const ConfigSource& source_;
  const ConfigNode* node_;
  std::string path_;
  std::vector<std::string_view> known_;
  absl::Status mistake_;
};

}  // namespace ranklab::experiment
