// What is different about a few ranks and links of a group, for sim/schedule_player.
#pragma once

#include <cstddef>
#include <vector>

#include <absl/status/status.h>

#include "core/units.h"

namespace ranklab::sim {

struct SlowRank {
  Rank rank = 0;
  double late = 0;         // seconds after the others it begins
  double port_factor = 1;  // a byte takes this much longer on its ports, in both directions
};

// A link of its own in this direction, behind the sender's port and in front of the receiver's. A
// message that holds it holds up those behind it, not the sender's port.
struct SlowLink {
  Rank from = 0;
  Rank to = 0;
  double latency = 0;  // seconds, on top of the model's
  double factor = 1;   // a byte takes this much longer than on the port
};

struct Disturbances {
  std::vector<SlowRank> ranks;  // each rank once
  std::vector<SlowLink> links;  // each pair once

  bool none() const { return ranks.empty() && links.empty(); }
};

// A bound for what each message is looked up in.
inline constexpr std::size_t kMostDisturbances = 64;

// Errors: InvalidArgument, ranks that are not in a group of `ranks`, times or factors that make no
// sense, more than kMostDisturbances.
absl::Status CheckDisturbances(const Disturbances& disturbances, int ranks);

}  // namespace ranklab::sim
