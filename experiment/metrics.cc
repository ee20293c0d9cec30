#include "experiment/metrics.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ranklab::experiment {
namespace {

std::optional<double> Positive(double value) {
  return value > 0 ? std::optional(value) : std::nullopt;
}

// Of what training leaves; a simulation trains nothing.
std::optional<double> Trained(const CellSummary& cell, double value) {
  return cell.kind == FigureKind::kModelled ? std::nullopt : std::optional(value);
}

constexpr std::array<Metric, 16> kMetrics = {{
    {"accuracy", "share of the test split that is classified right",
     [](const CellSummary& cell) { return Trained(cell, cell.accuracy); }},
    {"final_loss", "mean over the training split, after the last step",
     [](const CellSummary& cell) { return Trained(cell, cell.final_loss); }},
    {"test_loss", "mean over the test split, after the last step",
     [](const CellSummary& cell) { return Trained(cell, cell.test_loss); }},
    {"excess_loss", "test_loss over the entropy of the data's source, nats",
     [](const CellSummary& cell) {
       return cell.loss_floor > 0 ? Trained(cell, cell.test_loss - cell.loss_floor) : std::nullopt;
     }},
    {"skipped_steps", "for overflow, in the first repeat",
     [](const CellSummary& cell) {
       return Trained(cell, static_cast<double>(cell.skipped_steps));
     }},
    {"initial_loss", "of the first step's global batch",
     [](const CellSummary& cell) { return Trained(cell, cell.initial_loss); }},
    {"samples_per_second", "median of the repeats, modelled time",
     [](const CellSummary& cell) { return Positive(cell.samples_per_second.median); }},
    {"step_ms", "median of the repeats, modelled milliseconds",
     [](const CellSummary& cell) { return Positive(cell.step_seconds.median * 1e3); }},
    {"step_spread", "(most - least) / median of the repeats' step times",
     [](const CellSummary& cell) {
       const Spread& step = cell.step_seconds;
       return step.median > 0 ? std::optional((step.most - step.least) / step.median)
                              : std::nullopt;
     }},
    {"exposed_ms", "communication that compute does not hide, modelled milliseconds",
     [](const CellSummary& cell) {
       return cell.step_seconds.median > 0 ? std::optional(cell.exposed_seconds.median * 1e3)
                                           : std::nullopt;
     }},
    {"efficiency", "samples/s against workers times one worker with no exchange",
     [](const CellSummary& cell) { return Positive(cell.efficiency); }},
    {"predicted_ms", "the step's closed form, modelled milliseconds",
     [](const CellSummary& cell) { return Positive(cell.predicted_seconds * 1e3); }},
    {"ratio", "step / predicted", [](const CellSummary& cell) { return Positive(cell.ratio); }},
    {"exposed_ratio", "exposed communication / its closed form",
     [](const CellSummary& cell) { return Positive(cell.exposed_ratio); }},
    {"could_not_keep_up", "share of the messages that the shaper delivered too late",
     [](const CellSummary& cell) {
       return cell.messages > 0 ? std::optional(static_cast<double>(cell.could_not_keep_up) /
                                                static_cast<double>(cell.messages))
                                : std::nullopt;
     }},
    {"bytes_sent_per_step", "body bytes, mean over the ranks",
     [](const CellSummary& cell) {
       return cell.step_seconds.median > 0
                  ? std::optional(static_cast<double>(cell.bytes_sent_per_step))
                  : std::nullopt;
     }},
}};

constexpr std::array<std::string_view, 7> kCommonSettings = {
    "exchange",        "transport",       "fabric.preset", "cluster.workers",
    "cluster.servers", "compute.threads", "seed"};

}  // namespace

std::span<const Metric> Metrics() { return kMetrics; }

const Metric* FindMetric(std::string_view name) {
  const auto found = std::find_if(kMetrics.begin(), kMetrics.end(),
                                  [name](const Metric& metric) { return metric.name == name; });
  return found == kMetrics.end() ? nullptr : &*found;
}

std::span<const std::string_view> CommonSettings() { return kCommonSettings; }

std::optional<std::string> SettingOf(const CellSummary& cell, std::string_view path) {
  if (path == "exchange") {
    return cell.exchange;
  }
  if (path == "transport" || path == "exchange.transport") {
    return cell.transport;
  }
  if (path == "fabric.preset") {
    return cell.fabric;
  }
  if (path == "cluster.workers") {
    return std::to_string(cell.workers);
  }
  if (path == "cluster.servers") {
    return std::to_string(cell.servers);
  }
  if (path == "compute.threads") {
    return std::to_string(cell.threads);
  }
  if (path == "seed") {
    return std::to_string(cell.seed);
  }
  for (const auto& [swept, value] : cell.settings) {
    if (swept == path) {
      return value;
    }
  }
  return std::nullopt;
}

std::string LabelOf(const CellSummary& cell) {
  std::string label = cell.exchange;
  if (cell.fabric != "native") {
    label += ", " + cell.fabric;
  }
  label += ", " + std::to_string(cell.workers) + (cell.workers == 1 ? " worker" : " workers");
  for (const auto& [path, value] : cell.settings) {
    if (path != "exchange" && path != "fabric.preset" && path != "cluster.workers") {
      label += ", " + path.substr(path.rfind('.') + 1) + " " + value;
    }
  }
  return label;
}

}  // namespace ranklab::experiment
