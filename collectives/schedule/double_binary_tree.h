// All-reduce over two binary trees, half of the buffer each: a leaf of one is an inner rank of the
// other, so that every port works.
#pragma once

#include <absl/status/statusor.h>

#include "collectives/schedule/build_options.h"
#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

// Each tree reduces to its root and broadcasts back, in chunks_per_rank pieces that follow each
// other. Steps: 2 ceil(log2 P) for one piece; bytes sent per rank: at most 2S.
// The second tree is the first one mirrored if P is even, shifted by one rank if it is odd.
// Source: Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction
// and scan", Parallel Computing 35(12), 2009; the trees: NVIDIA NCCL, src/graph/trees.cc.
// Errors: as CheckBuildOptions.
absl::StatusOr<Schedule> BuildDoubleBinaryTree(const BuildOptions& options);

}  // namespace ranklab::collectives
