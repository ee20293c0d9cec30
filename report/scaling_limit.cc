#include "report/scaling_limit.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <absl/strings/str_format.h>

#include "report/figures.h"

namespace ranklab::report {
namespace {

using experiment::CellSummary;

constexpr double kHalf = 0.5;
constexpr std::size_t kLeastPoints = 5;
constexpr int kLeastWorkers = 16;

using Curve = std::vector<const CellSummary*>;  // by workers

std::vector<Curve> CurvesOf(const std::string& part, std::span<const CellSummary> cells) {
  using Key =
      std::tuple<std::string, std::string, std::vector<std::pair<std::string, std::string>>>;
  std::map<Key, Curve> curves;
  for (const CellSummary& cell : cells) {
    if (cell.part != part || cell.baseline || cell.efficiency <= 0 || cell.latency_share <= 0) {
      continue;
    }
    auto settings = cell.settings;
    std::erase_if(settings, [](const auto& setting) { return setting.first == "cluster.workers"; });
    curves[{cell.exchange, cell.fabric, std::move(settings)}].push_back(&cell);
  }
  std::vector<Curve> whole;
  for (auto& [key, curve] : curves) {
    std::sort(curve.begin(), curve.end(),
              [](const auto* a, const auto* b) { return a->workers < b->workers; });
    if (curve.size() >= kLeastPoints && curve.back()->workers >= kLeastWorkers) {
      whole.push_back(std::move(curve));
    }
  }
  return whole;
}

std::string NameOf(const CellSummary& cell) {
  const std::string servers =
      cell.exchange.starts_with("ps")
          ? absl::StrFormat(" with %d server%s", cell.servers, cell.servers == 1 ? "" : "s")
          : "";
  return cell.exchange + servers + " on " + cell.fabric;
}

std::string Workers(int count) {
  return absl::StrFormat("%d worker%s", count, count == 1 ? "" : "s");
}

std::string WhyLimited(const CellSummary& cell) {
  if (cell.latency_share >= kHalf) {
    return absl::StrFormat(
        "%.0f %% of its exchange is the latency of messages that wait for each other, which more "
        "bandwidth does not take away",
        100 * cell.latency_share);
  }
  return absl::StrFormat("%.0f %% of its exchange is bandwidth, %s", 100 * (1 - cell.latency_share),
                         cell.exchange.starts_with("ps")
                             ? "of the servers' ports, which carry what every worker sends"
                             : "of each worker's port, and latency the rest");
}

std::string Describe(const Curve& curve) {
  const auto limit = std::find_if(curve.begin(), curve.end(),
                                  [](const CellSummary* cell) { return cell->efficiency < kHalf; });
  const CellSummary& last = *curve.back();
  if (limit == curve.end()) {
    return absl::StrFormat("%s keeps an efficiency of %s with %d workers", NameOf(last),
                           PrintShare(last.efficiency), last.workers);
  }
  const CellSummary& below = **limit;
  const std::string until = limit == curve.begin() ? "is below half of the ideal from the start"
                                                   : "keeps half of the ideal up to " +
                                                         Workers((*std::prev(limit))->workers);
  return absl::StrFormat("%s %s; with %d it has %s of it: %s", NameOf(below), until, below.workers,
                         PrintShare(below.efficiency), WhyLimited(below));
}

}  // namespace

std::vector<std::string> DescribeScalingLimits(const std::string& part,
                                               std::span<const CellSummary> cells) {
  std::vector<std::string> sentences;
  for (const Curve& curve : CurvesOf(part, cells)) {
    sentences.push_back(part + ": " + Describe(curve) + ".");
  }
  return sentences;
}

}  // namespace ranklab::report
