// All-reduce in three stages for nodes of several ranks: reduce-scatter in the node, all-reduce
// among the ranks with the same place in their nodes, all-gather in the node; rings all three.
#pragma once

#include <absl/status/statusor.h>

#include "collectives/schedule/build_options.h"
#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

// M = ranks_per_node, N = P / M nodes; node k is the ranks kM to (k+1)M - 1. Steps: 2(M-1) in the
// node and 2(N-1) between nodes; bytes sent per rank: 2S(M-1)/M in the node and 2S(N-1)/P between.
// Source: Jia et al., "Highly scalable deep learning training system with mixed-precision",
// arXiv:1807.11205, 2018 (hierarchical all-reduce).
// Errors: as CheckBuildOptions; InvalidArgument, ranks_per_node does not divide the group.
absl::StatusOr<Schedule> BuildHierarchical(const BuildOptions& options);

// As in the options; 0 stands for the group's smallest divisor that is not below its square root.
int RanksPerNode(const BuildOptions& options);

}  // namespace ranklab::collectives
