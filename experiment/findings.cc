#include "experiment/findings.h"

#include <algorithm>

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

// How far the worst endpoint is from its claim: 2 is twice the latency, or half the bandwidth.
double WorstFactor(const CellSummary& summary) {
  double worst = 0;
  for (const NetworkRecord& network : summary.network) {
    if (!network.judged || network.held) {
      continue;
    }
    if (network.asked_latency > 0) {
      worst = std::max(worst, network.latency_median / network.asked_latency);
    }
    if (network.bandwidth_median > 0) {
      worst = std::max(worst, network.asked_bandwidth / network.bandwidth_median);
    }
  }
  return worst;
}

// What is known to lie between the prediction and the step: in a word, and with its figures.
struct Why {
  std::string cause{};
  std::string text{};
  bool late = false;  // because this machine did not keep up
  void Add(const std::string& word, const std::string& reason) {
    cause += (cause.empty() ? "" : ", ") + word;
    text += (text.empty() ? "" : "; ") + reason;
  }
};

Why WhyAbove(const LabSpec& spec, const CellSummary& summary, double lateness_seconds) {
  Why why;
  if (!spec.scenario.injections.empty()) {
    why.Add("injections", "the scenario's injections are not in the prediction");
  }
  if (lateness_seconds > 0.01 * summary.step_seconds.median) {
    why.Add("late compute", absl::StrFormat("compute ran %.3g ms a step past its modelled end",
                                            lateness_seconds * 1e3));
    why.late = true;
  }
  if (LateShare(summary) > 0.01) {
    why.Add("late messages",
            absl::StrFormat("%.0f %% of the messages were late", LateShare(summary) * 100));
    why.late = true;
  }
  if (spec.compute.native()) {
    why.Add("native compute", "compute is native, and the prediction has only the network");
  }
  if (why.text.empty()) {
    why.Add("unexplained", "neither late compute nor late messages explain it");
  }
  return why;
}

constexpr std::string_view kRaiseTimeScale =
    "raise fabric.time_scale, which leaves this machine more time, or use more cores";

Finding AbovePrediction(const LabSpec& spec, const CellSummary& summary, double lateness_seconds) {
  const Why why = WhyAbove(spec, summary, lateness_seconds);
  return {.code = "ABOVE_PREDICTION",
          .cause = why.cause,
          .text = absl::StrFormat("the step took %.2f times the predicted %.3g ms: %s",
                                  summary.ratio, summary.predicted_seconds * 1e3, why.text),
          .remedy = why.late ? std::string(kRaiseTimeScale) : "",
          .severity = summary.ratio};
}

Finding EmulatedPrecision(const CellSummary& summary) {
  const bool half = summary.precision == "fp16";
  return {
      .code = "EMULATED_PRECISION",
      .cause = summary.precision,
      .text = absl::StrFormat(
          "%s on a CPU: weights, activations and their gradients are stored in it; %s, the rest "
          "is computed in fp32 and rounded, so that native times say nothing about a GPU's",
          summary.precision,
          half ? "products are fp32 too"
               : "products are oneDNN's in bf16 where the processor has them (environment: "
                 "products_of_16_bits)")};
}

}  // namespace

FigureKind KindOf(const LabSpec& spec) {
  return spec.fabric.native() && spec.compute.native() ? FigureKind::kMeasured
                                                       : FigureKind::kShaped;
}

std::vector<Finding> FindingsOf(const LabSpec& spec, const CellSummary& summary, int cores,
                                double lateness_seconds) {
  std::vector<Finding> findings;
  const int busy = summary.workers * summary.threads;
  if (summary.kind != FigureKind::kModelled && spec.compute.native() && cores > 0 && busy > cores) {
    findings.push_back(
        {.code = "CPU_OVERSUBSCRIBED",
         .text = absl::StrFormat("%d workers x %d threads on %d cores; native times include "
                                 "waiting for a core",
                                 summary.workers, summary.threads, cores),
         .remedy = "run fewer workers, or model the compute (compute.model)",
         .severity = static_cast<double>(busy) / cores});
  }
  if (summary.precision != "fp32" && summary.kind != FigureKind::kModelled) {
    findings.push_back(EmulatedPrecision(summary));
  }
  if (spec.cluster.shared_gpu && summary.kind != FigureKind::kModelled) {
    findings.push_back({.code = "SHARED_GPU",
                        .text = absl::StrFormat(
                            "%d workers on one GPU (cluster.shared_gpu): they take turns on it, "
                            "and NCCL speaks through sockets on loopback; the times mean "
                            "nothing, only results, aborts and recovery do",
                            summary.workers),
                        .remedy = "give each worker a GPU",
                        .severity = static_cast<double>(summary.workers)});
  }
  if (spec.asynchronous() && summary.workers > 1 && summary.kind != FigureKind::kModelled) {
    findings.push_back(
        {.code = "RATE_DIVIDED",
         .text = absl::StrFormat(
             "asynchronous, so each worker's gradient is an update of its own, "
             "at the learning rate of its step divided by the %d workers%s",
             summary.workers, spec.train.optimizer == "momentum" ? kMomentumOfStaleGradients : ""),
         .severity = static_cast<double>(summary.workers)});
  }
  if (LateShare(summary) > kLateShareToReport) {
    findings.push_back(
        {.code = "COULD_NOT_KEEP_UP",
         .text = absl::StrFormat("%d of %d messages (%.0f %%) arrived later than the fabric would "
                                 "have delivered them, at fabric.time_scale %g",
                                 summary.could_not_keep_up, summary.messages,
                                 LateShare(summary) * 100, summary.time_scale),
         .remedy = std::string(kRaiseTimeScale),
         .severity = LateShare(summary)});
  }
  if (const std::string broken = WhatDidNotHold(summary); !broken.empty()) {
    findings.push_back({.code = "NETWORK_NOT_HELD",
                        .text = broken,
                        .remedy = std::string(kRaiseTimeScale),
                        .severity = WorstFactor(summary)});
  }
  if (summary.ratio > kRatioToExplain) {
    findings.push_back(AbovePrediction(spec, summary, lateness_seconds));
  }
  return findings;
}

}  // namespace ranklab::experiment
