#include "experiment/findings.h"

#include <absl/strings/str_format.h>

namespace ranklab::experiment {
namespace {

// Source: Mitliagkas et al., "Asynchrony begets momentum", Allerton 2016.
constexpr char kMomentumOfStaleGradients[] =
    "; momentum gathers over updates, so over as many times fewer samples, and stale gradients add "
    "to it: a rate that is stable synchronously may diverge here";

double LateShare(const CellSummary& summary) {
  return summary.messages > 0 ? static_cast<double>(summary.could_not_keep_up) /
                                    static_cast<double>(summary.messages)
                              : 0;
}

// "worker 0: latency ...; server 1: ...", at most three of them.
std::string WhatDidNotHold(const CellSummary& summary) {
  constexpr int kMost = 3;
  std::string text;
  int named = 0;
  int broken = 0;
  for (const NetworkRecord& network : summary.network) {
    if (!network.judged || network.held) {
      continue;
    }
    ++broken;
    if (named < kMost && !network.findings.empty()) {
      text += (text.empty() ? "" : "; ") + network.endpoint + ": " + network.findings.front();
      ++named;
    }
  }
  return broken > named && named > 0 ? absl::StrFormat("%s; and %d more", text, broken - named)
                                     : text;
}

// What is known to lie between the prediction and the step, in words.
std::string WhyAbove(const LabSpec& spec, const CellSummary& summary, double lateness_seconds) {
  std::string why;
  const auto add = [&why](const std::string& reason) { why += (why.empty() ? "" : "; ") + reason; };
  if (!spec.scenario.injections.empty()) {
    add("the scenario's injections are not in the prediction");
  }
  if (lateness_seconds > 0.01 * summary.step_seconds.median) {
    add(
        absl::StrFormat("compute ran %.3g ms a step past its modelled end (a larger "
                        "fabric.time_scale leaves it more time)",
                        lateness_seconds * 1e3));
  }
  if (LateShare(summary) > 0.01) {
    add(absl::StrFormat("%.0f %% of the messages were late", LateShare(summary) * 100));
  }
  if (spec.compute.native()) {
    add("compute is native, and the prediction has only the network");
  }
  return why.empty() ? "neither late compute nor late messages explain it" : why;
}

}  // namespace

FigureKind KindOf(const LabSpec& spec) {
  return spec.fabric.native() && spec.compute.native() ? FigureKind::kMeasured
                                                       : FigureKind::kShaped;
}

std::vector<std::string> FindingsOf(const LabSpec& spec, const CellSummary& summary, int cores,
                                    double lateness_seconds) {
  std::vector<std::string> findings;
  const int busy = summary.workers * summary.threads;
  if (spec.compute.native() && cores > 0 && busy > cores) {
    findings.push_back(
        absl::StrFormat("CPU_OVERSUBSCRIBED: %d workers x %d threads on %d cores; native times "
                        "include waiting for a core",
                        summary.workers, summary.threads, cores));
  }
  if (spec.asynchronous() && summary.workers > 1) {
    findings.push_back(absl::StrFormat(
        "RATE_DIVIDED: asynchronous, so each worker's gradient is an update of its own, at the "
        "learning rate %g / %d workers = %g%s",
        spec.train.learning_rate, summary.workers, spec.train.learning_rate / summary.workers,
        spec.train.optimizer == "momentum" ? kMomentumOfStaleGradients : ""));
  }
  if (LateShare(summary) > kLateShareToReport) {
    findings.push_back(absl::StrFormat(
        "COULD_NOT_KEEP_UP: %d of %d messages (%.0f %%) arrived later than the fabric would have "
        "delivered them; raise fabric.time_scale (%g here)",
        summary.could_not_keep_up, summary.messages, LateShare(summary) * 100, summary.time_scale));
  }
  if (const std::string broken = WhatDidNotHold(summary); !broken.empty()) {
    findings.push_back("NETWORK_NOT_HELD: " + broken);
  }
  if (summary.ratio > kRatioToExplain) {
    findings.push_back(absl::StrFormat(
        "ABOVE_PREDICTION: the step took %.2f times the predicted %.3g ms: %s", summary.ratio,
        summary.predicted_seconds * 1e3, WhyAbove(spec, summary, lateness_seconds)));
  }
  return findings;
}

}  // namespace ranklab::experiment
