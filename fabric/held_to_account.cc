#include "fabric/held_to_account.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <absl/strings/str_format.h>

namespace ranklab::fabric {
namespace {

constexpr double kBand = 0.05;
constexpr Nanos kLatencyBand = std::chrono::microseconds(200);

double Micros(Nanos time) { return static_cast<double>(time.count()) / 1e3; }

bool BandwidthWithin(const LinkSpec& port, double found) {
  const double claimed = port.bandwidth.bytes_per_second;
  return std::abs(found - claimed) <= kBand * claimed;
}

bool LatencyWithin(const LinkSpec& port, Nanos found) {
  const auto share = Nanos(std::llround(kBand * static_cast<double>(port.alpha.count())));
  const Nanos difference = found > port.alpha ? found - port.alpha : port.alpha - found;
  return difference <= std::max(share, kLatencyBand);
}

}  // namespace

NetworkVerdict HoldToAccount(const NetworkClaim& claim, const NetworkFigures& figures) {
  NetworkVerdict verdict;
  const bool unseen =
      claim.body_received > 0 && figures.bandwidth_samples == 0 && figures.latency_samples == 0;
  if (unseen) {
    verdict.findings.push_back("no message was timed: the network was not shaped");
  } else {
    verdict.bandwidth_held =
        figures.bandwidth_samples == 0 || BandwidthWithin(claim.port, figures.bandwidth_median);
    verdict.latency_held =
        figures.latency_samples == 0 || LatencyWithin(claim.port, figures.latency_median);
    if (!verdict.bandwidth_held) {
      verdict.findings.push_back(absl::StrFormat(
          "bandwidth %.4g MB/s (median) where the network has %.4g MB/s",
          figures.bandwidth_median / 1e6, claim.port.bandwidth.bytes_per_second / 1e6));
    }
    if (!verdict.latency_held) {
      verdict.findings.push_back(
          absl::StrFormat("latency %.1f us (median) where the network has %.1f us",
                          Micros(figures.latency_median), Micros(claim.port.alpha)));
    }
  }
  verdict.bytes_held = figures.body_received == claim.body_received;
  if (!verdict.bytes_held) {
    verdict.findings.push_back(absl::StrFormat("%d bytes arrived where the exchange moves %d",
                                               figures.body_received, claim.body_received));
  }
  return verdict;
}

}  // namespace ranklab::fabric
