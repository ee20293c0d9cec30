#include "sim/step/group_cost.h"

#include <algorithm>
#include <cmath>

namespace ranklab::sim {

Group GroupOf(const Fabric& fabric, int ranks, int stride) {
  const int places = std::max(1, fabric.node_devices / stride);
  int node_ranks = std::min(ranks, places);
  while (ranks % node_ranks != 0) {
    --node_ranks;
  }
  return {.ranks = ranks, .node_ranks = node_ranks};
}

double GroupCost::BusBandwidth(const Group& group) const {
  const double inside = fabric_.inside * calibration_.inside_efficiency;
  if (group.ranks == group.node_ranks) {
    return inside;
  }
  // The node's devices are in groups like this one; each has its share of the node's ports.
  const double share =
      fabric_.between * calibration_.between_efficiency * group.node_ranks / fabric_.node_devices;
  return group.node_ranks > 1 ? std::min(inside, share) : share;
}

double GroupCost::Latency(const Group& group, int rounds) const {
  const int nodes = group.ranks / group.node_ranks;
  const double ring =
      (nodes - 1) * fabric_.between_hop + (group.ranks - nodes) * fabric_.inside_hop;
  const double tree = std::floor(std::log2(nodes)) * fabric_.between_hop +
                      (group.node_ranks - 1) * fabric_.inside_hop;
  return calibration_.collective_seconds + rounds * std::min(ring, tree);
}

double GroupCost::AllReduce(const Group& group, double bytes) const {
  if (group.ranks == 1) {
    return 0;
  }
  const double n = group.ranks;
  return Latency(group, 2) + 2 * (n - 1) / n * bytes / BusBandwidth(group);
}

double GroupCost::AllGather(const Group& group, double bytes) const {
  if (group.ranks == 1) {
    return 0;
  }
  const double n = group.ranks;
  return Latency(group, 1) + (n - 1) / n * bytes / BusBandwidth(group);
}

double GroupCost::AllToAll(const Group& group, double bytes) const {
  if (group.ranks == 1) {
    return 0;
  }
  const double n = group.ranks;
  const double inside =
      (group.node_ranks - 1) / n * bytes / (fabric_.inside * calibration_.inside_efficiency);
  const double port = fabric_.between * calibration_.between_efficiency / fabric_.node_devices;
  const double between = (n - group.node_ranks) / n * bytes / port;
  return Latency(group, 1) + std::max(inside, between);
}

double GroupCost::Send(int stride, double bytes) const {
  if (stride < fabric_.node_devices) {
    return calibration_.collective_seconds + fabric_.inside_hop +
           bytes / (fabric_.inside * calibration_.inside_efficiency);
  }
  const double port = fabric_.between * calibration_.between_efficiency / fabric_.node_devices;
  return calibration_.collective_seconds + fabric_.between_hop + bytes / port;
}

}  // namespace ranklab::sim
