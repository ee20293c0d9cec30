// summary.json, written and read by the fields of run_record_fields.h.
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/status.h"
#include "experiment/run_record.h"
#include "experiment/run_record_fields.h"

namespace ranklab::experiment {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "ranklab summary 3";

// ---- writing ------------------------------------------------------------------------------------

class Writer {
 public:
  template <typename T>
  void operator()(const char* name, T& value) {
    json_[name] = Encode(value);
  }

  template <typename T>
  static Json Encode(T& value) {
    if constexpr (std::is_same_v<T, double>) {
      return std::isfinite(value) ? Json(value) : Json(nullptr);  // a loss that ran away
    } else if constexpr (std::is_same_v<T, FigureKind>) {
      return std::string(NameOf(value));
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return Json(value);
    } else {
      Writer writer;
      Describe(writer, value);
      return std::move(writer.json_);
    }
  }
  static Json Encode(std::optional<Bytes>& value) { return value ? Json(*value) : Json(nullptr); }
  template <typename T>
  static Json Encode(std::vector<T>& values) {
    Json list = Json::array();
    for (T& value : values) {
      list.push_back(Encode(value));
    }
    return list;
  }
  static Json Encode(std::vector<std::pair<std::string, std::string>>& settings) {
    Json map = Json::object();
    for (const auto& [path, value] : settings) {
      map[path] = value;
    }
    return map;
  }
  static Json Encode(std::map<std::string, std::string>& words) {
    Json map = Json::object();
    for (const auto& [key, value] : words) {
      map[key] = value;
    }
    return map;
  }
  static Json Encode(std::map<std::int64_t, std::int64_t>& counts) {
    Json map = Json::object();
    for (const auto& [key, value] : counts) {
      map[std::to_string(key)] = value;
    }
    return map;
  }

 private:
  Json json_ = Json::object();
};

// ---- reading ------------------------------------------------------------------------------------

// Keeps the first mistake and where it is: "cells[3].workers". Checks types before it converts, so
// that nothing throws.
class Reader {
 public:
  Reader(const Json& json, std::string path, absl::Status& mistake)
      : json_(json), path_(std::move(path)), mistake_(mistake) {
    if (!json_.is_object()) {
      Fail(path_, "an object");
    }
  }

  template <typename T>
  void operator()(const char* name, T& value) {
    if (!mistake_.ok()) {
      return;
    }
    const std::string path = path_.empty() ? name : path_ + "." + name;
    const auto found = json_.find(name);
    if (found == json_.end()) {
      Fail(path, "present");
      return;
    }
    Decode(*found, path, value);
  }

 private:
  void Fail(const std::string& path, std::string_view what) {
    if (mistake_.ok()) {
      mistake_ = InvalidArgument("summary: %s is not %s", path.empty() ? "it" : path, what);
    }
  }

  void Decode(const Json& json, const std::string& path, double& value) {
    if (json.is_null()) {
      value = std::numeric_limits<double>::quiet_NaN();
    } else if (json.is_number()) {
      value = json.get<double>();
    } else {
      Fail(path, "a number");
    }
  }
  void Decode(const Json& json, const std::string& path, bool& value) {
    if (json.is_boolean()) {
      value = json.get<bool>();
    } else {
      Fail(path, "true or false");
    }
  }
  void Decode(const Json& json, const std::string& path, std::string& value) {
    if (json.is_string()) {
      value = json.get<std::string>();
    } else {
      Fail(path, "a text");
    }
  }
  template <typename T>
  requires std::is_integral_v<T>
  void Decode(const Json& json, const std::string& path, T& value) {
    if (json.is_number_unsigned() && std::in_range<T>(json.get<std::uint64_t>())) {
      value = static_cast<T>(json.get<std::uint64_t>());
    } else if (json.is_number_integer() && !json.is_number_unsigned() &&
               std::in_range<T>(json.get<std::int64_t>())) {
      value = static_cast<T>(json.get<std::int64_t>());
    } else {
      Fail(path, "a whole number in range");
    }
  }
  void Decode(const Json& json, const std::string& path, std::optional<Bytes>& value) {
    if (json.is_null()) {
      value.reset();
    } else {
      Decode(json, path, value.emplace());
    }
  }
  void Decode(const Json& json, const std::string& path, FigureKind& value) {
    for (const FigureKind kind : {FigureKind::kMeasured, FigureKind::kShaped, FigureKind::kModelled,
                                  FigureKind::kAssumed}) {
      if (json == Json(std::string(NameOf(kind)))) {
        value = kind;
        return;
      }
    }
    Fail(path, "measured, shaped, modelled or assumed");
  }
  template <typename T>
  void Decode(const Json& json, const std::string& path, std::vector<T>& values) {
    if (!json.is_array()) {
      Fail(path, "a list");
      return;
    }
    values.clear();
    for (const Json& item : json) {
      T value{};
      Decode(item, path + "[" + std::to_string(values.size()) + "]", value);
      if (!mistake_.ok()) {
        return;
      }
      values.push_back(std::move(value));
    }
  }
  // A map with texts as values, in the order of the file.
  void Decode(const Json& json, const std::string& path,
              std::vector<std::pair<std::string, std::string>>& settings) {
    if (!json.is_object()) {
      Fail(path, "an object");
      return;
    }
    settings.clear();
    for (const auto& [key, item] : json.items()) {
      std::string value;
      Decode(item, path + "." + key, value);
      settings.emplace_back(key, std::move(value));
    }
  }
  void Decode(const Json& json, const std::string& path,
              std::map<std::string, std::string>& words) {
    std::vector<std::pair<std::string, std::string>> pairs;
    Decode(json, path, pairs);
    words = {pairs.begin(), pairs.end()};
  }
  void Decode(const Json& json, const std::string& path,
              std::map<std::int64_t, std::int64_t>& counts) {
    if (!json.is_object()) {
      Fail(path, "an object");
      return;
    }
    counts.clear();
    for (const auto& [key, item] : json.items()) {
      std::int64_t number = 0;
      const Json key_as_number = Json::parse(key, nullptr, /*allow_exceptions=*/false);
      Decode(key_as_number, path + "." + key, number);
      Decode(item, path + "." + key, counts[number]);
    }
  }
  template <typename T>
  requires std::is_class_v<T>
  void Decode(const Json& json, const std::string& path, T& value) {
    Reader reader(json, path, mistake_);
    if (mistake_.ok()) {
      Describe(reader, value);
    }
  }

  const Json& json_;
  std::string path_;
  absl::Status& mistake_;
};

}  // namespace

std::string ToJson(const RunSummary& summary) {
  RunSummary copy = summary;
  Json json = Json::object();
  json["format"] = kFormat;
  json.update(Writer::Encode(copy));
  // A text that is not UTF-8 (a processor's name, say) must not cost the record.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<RunSummary> RunSummaryFromJson(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return InvalidArgument("summary: not JSON");
  }
  if (!json.is_object() || !json.contains("format") || json["format"] != Json(kFormat)) {
    return InvalidArgument("summary: its format is not \"%s\"", kFormat);
  }
  absl::Status mistake;
  RunSummary summary;
  Reader reader(json, "", mistake);
  Describe(reader, summary);
  RETURN_IF_ERROR(mistake);
  for (std::size_t i = 0; i < summary.cells.size(); ++i) {
    for (const RankBreakdown& rank : summary.cells[i].breakdown) {
      if (rank.mfu > 1 || rank.hfu > 1) {
        return InvalidArgument(
            "summary: cells[%d]: rank %d has an MFU of %.0f %% and an HFU of %.0f %%; more than "
            "100 %% cannot be",
            i, rank.rank, rank.mfu * 100, rank.hfu * 100);
      }
    }
  }
  return summary;
}

}  // namespace ranklab::experiment
