// summary.json: one list of fields for writing and for reading, so that the two cannot drift apart.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/status.h"
#include "experiment/run_record.h"

namespace ranklab::experiment {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "ranklab summary 1";

// ---- the fields ---------------------------------------------------------------------------------

template <typename Archive>
void Describe(Archive& archive, Spread& spread) {
  archive("median", spread.median);
  archive("least", spread.least);
  archive("most", spread.most);
}

template <typename Archive>
void Describe(Archive& archive, RankBreakdown& bar) {
  archive("rank", bar.rank);
  archive("input", bar.input);
  archive("forward", bar.forward);
  archive("backward", bar.backward);
  archive("exposed", bar.exposed);
  archive("optimizer", bar.optimizer);
  archive("other", bar.other);
}

template <typename Archive>
void Describe(Archive& archive, ConnectionRecord& connection) {
  archive("peer", connection.peer);
  archive("body_sent", connection.body_sent);
  archive("body_received", connection.body_received);
  archive("wire_sent", connection.wire_sent);
  archive("wire_received", connection.wire_received);
  archive("messages_sent", connection.messages_sent);
  archive("messages_received", connection.messages_received);
}

template <typename Archive>
void Describe(Archive& archive, NetworkRecord& network) {
  archive("endpoint", network.endpoint);
  archive("connections", network.connections);
  archive("judged", network.judged);
  archive("held", network.held);
  archive("findings", network.findings);
  archive("asked_bandwidth", network.asked_bandwidth);
  archive("bandwidth_median", network.bandwidth_median);
  archive("bandwidth_p90", network.bandwidth_p90);
  archive("asked_latency", network.asked_latency);
  archive("latency_median", network.latency_median);
  archive("latency_p90", network.latency_p90);
  archive("body_received", network.body_received);
  archive("body_claimed", network.body_claimed);
}

template <typename Archive>
void Describe(Archive& archive, CellSummary& cell) {
  archive("part", cell.part);
  archive("cell", cell.cell);
  archive("baseline", cell.baseline);
  archive("settings", cell.settings);
  archive("exchange", cell.exchange);
  archive("transport", cell.transport);
  archive("fabric", cell.fabric);
  archive("workers", cell.workers);
  archive("servers", cell.servers);
  archive("threads", cell.threads);
  archive("seed", cell.seed);
  archive("time_scale", cell.time_scale);
  archive("kind", cell.kind);
  archive("repeats", cell.repeats);
  archive("counted_steps", cell.counted_steps);
  archive("samples_per_second", cell.samples_per_second);
  archive("step_seconds", cell.step_seconds);
  archive("exposed_seconds", cell.exposed_seconds);
  archive("efficiency", cell.efficiency);
  archive("predicted_seconds", cell.predicted_seconds);
  archive("ratio", cell.ratio);
  archive("predicted_exposed_seconds", cell.predicted_exposed_seconds);
  archive("exposed_ratio", cell.exposed_ratio);
  archive("initial_loss", cell.initial_loss);
  archive("final_loss", cell.final_loss);
  archive("accuracy", cell.accuracy);
  archive("param_hashes", cell.param_hashes);
  archive("hash_equal_across_ranks", cell.hash_equal_across_ranks);
  archive("hash_equal_across_repeats", cell.hash_equal_across_repeats);
  archive("breakdown", cell.breakdown);
  archive("loss_curve", cell.loss_curve);
  archive("loss_seconds", cell.loss_seconds);
  archive("staleness", cell.staleness);
  archive("messages", cell.messages);
  archive("could_not_keep_up", cell.could_not_keep_up);
  archive("lateness_log2_us", cell.lateness_log2_us);
  archive("bytes_sent_per_step", cell.bytes_sent_per_step);
  archive("samples_per_rank", cell.samples_per_rank);
  archive("passes_per_rank", cell.passes_per_rank);
  archive("network", cell.network);
  archive("clock_residual_seconds", cell.clock_residual_seconds);
  archive("findings", cell.findings);
}

template <typename Archive>
void Describe(Archive& archive, ExpectationOutcome& outcome) {
  archive("part", outcome.part);
  archive("text", outcome.text);
  archive("held", outcome.held);
  archive("found", outcome.found);
}

template <typename Archive>
void Describe(Archive& archive, RunSummary& summary) {
  archive("lab", summary.lab);
  archive("question", summary.question);
  archive("verdict", summary.verdict);
  archive("exit_code", summary.exit_code);
  archive("complete", summary.complete);
  archive("build", summary.build);
  archive("lab_hash", summary.lab_hash);
  archive("environment", summary.environment);
  archive("sentences", summary.sentences);
  archive("expectations", summary.expectations);
  archive("cells", summary.cells);
  archive("lab_text", summary.lab_text);
}

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
  if (!mistake.ok()) {
    return mistake;
  }
  return summary;
}

}  // namespace ranklab::experiment
