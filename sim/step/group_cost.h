// Seconds of a collective among a group of devices that all groups like it run at the same time.
// Ring or tree, whichever is faster; alpha-beta with the fabric's hops.
// Sources: docs/schedules.md for steps and bytes; NVIDIA/nccl src/graph/tuning.cc for the hops.
#pragma once

#include "sim/cluster/accelerator.h"
#include "sim/step/calibration.h"

namespace ranklab::sim {

struct Group {
  int ranks = 1;
  int node_ranks = 1;  // of the group in one node; divides ranks
};

// Members lie `stride` devices apart: tensor ranks 1, context ranks after them, and so on.
Group GroupOf(const Fabric& fabric, int ranks, int stride);

class GroupCost {
 public:
  GroupCost(const Fabric& fabric, const Calibration& calibration)
      : fabric_(fabric), calibration_(calibration) {}

  // `bytes`: of the whole buffer on a rank; of an all-to-all, what a rank sends in all.
  double AllReduce(const Group& group, double bytes) const;
  double AllGather(const Group& group, double bytes) const;  // and reduce-scatter: the same
  double AllToAll(const Group& group, double bytes) const;
  // To the neighbouring stage, `stride` devices away, each device of the stage its own message.
  double Send(int stride, double bytes) const;

 private:
  double BusBandwidth(const Group& group) const;
  double Latency(const Group& group, int rounds) const;

  Fabric fabric_;
  Calibration calibration_;
};

}  // namespace ranklab::sim
