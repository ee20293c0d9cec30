#include "sim/disturbances.h"

#include <cmath>

#include "core/status.h"

namespace ranklab::sim {
namespace {

bool NamesNoRank(Rank rank, int ranks) { return rank < 0 || rank >= ranks; }
bool MakesNoSense(double delay, double factor) {
  return !(delay >= 0 && std::isfinite(delay) && factor > 0 && std::isfinite(factor));
}

}  // namespace

absl::Status CheckDisturbances(const Disturbances& disturbances, int ranks) {
  if (disturbances.ranks.size() + disturbances.links.size() > kMostDisturbances) {
    return InvalidArgument("%d disturbed ranks and links: there may be %d",
                           disturbances.ranks.size() + disturbances.links.size(),
                           kMostDisturbances);
  }
  for (const SlowRank& slow : disturbances.ranks) {
    if (NamesNoRank(slow.rank, ranks) || MakesNoSense(slow.late, slow.port_factor)) {
      return InvalidArgument(
          "slow rank %d, %g s late, port factor %g: a rank below %d, a time of at least 0 and a "
          "factor above 0 are needed",
          slow.rank, slow.late, slow.port_factor, ranks);
    }
  }
  for (const SlowLink& slow : disturbances.links) {
    if (NamesNoRank(slow.from, ranks) || NamesNoRank(slow.to, ranks) ||
        MakesNoSense(slow.latency, slow.factor)) {
      return InvalidArgument(
          "slow link from %d to %d, %g s, factor %g: ranks below %d, a time of at least 0 and a "
          "factor above 0 are needed",
          slow.from, slow.to, slow.latency, slow.factor, ranks);
    }
  }
  return absl::OkStatus();
}

}  // namespace ranklab::sim
