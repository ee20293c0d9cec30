#include "collectives/schedule/double_binary_tree.h"

#include <utility>

#include "collectives/schedule/in_channels.h"
#include "collectives/schedule/op_list.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

constexpr Rank kNone = -1;

struct Node {
  Rank parent = kNone;
  Rank children[2] = {kNone, kNone};
};

// Rank 0 is above the tree of the others, in which the lowest set bit of a rank is its height and
// subtrees that would lie outside of the group are cut off:
//
//   0---------8            of 14
//        ____/ \____
//       4           12
//     2   6       10   13
//    1 3 5 7     9 11
Node PlaceOf(Rank rank, int size) {
  Node node;
  if (rank == 0) {
    int top = 1;
    while (2 * top < size) {
      top *= 2;
    }
    node.children[0] = size > 1 ? top : kNone;
    return node;
  }
  const int bit = rank & -rank;
  node.parent = (rank ^ bit) | (2 * bit);
  if (node.parent >= size) {
    node.parent = rank ^ bit;
  }
  node.children[0] = bit > 1 ? rank - bit / 2 : kNone;
  for (int below = bit / 2; below >= 1 && node.children[1] == kNone; below /= 2) {
    node.children[1] = rank + below < size ? rank + below : kNone;
  }
  return node;
}

// In tree `tree`, 0 or 1.
Node PlaceIn(int tree, Rank rank, int size) {
  if (tree == 0) {
    return PlaceOf(rank, size);
  }
  const bool mirrors = size % 2 == 0;
  Node node = PlaceOf(mirrors ? size - 1 - rank : (rank + size - 1) % size, size);
  for (Rank* peer : {&node.parent, &node.children[0], &node.children[1]}) {
    if (*peer != kNone) {
      *peer = mirrors ? size - 1 - *peer : (*peer + 1) % size;
    }
  }
  return node;
}

// Up and down are channels of their own: one piece may come down while the next still goes up.
void AddTree(OpList& list, int tree, const Node& node) {
  const Chunks half = {.first = tree};
  const std::int32_t up = 2 * tree;
  const std::int32_t down = up + 1;
  for (const Rank child : node.children) {
    if (child != kNone) {
      list.RecvReduce(child, half, up);
    }
  }
  if (node.parent != kNone) {
    list.Send(node.parent, half, up);
    list.Recv(node.parent, half, down);
  }
  for (const Rank child : node.children) {
    if (child != kNone) {
      list.Send(child, half, down);
    }
  }
}

}  // namespace

absl::StatusOr<Schedule> BuildDoubleBinaryTree(const BuildOptions& options) {
  RETURN_IF_ERROR(CheckBuildOptions(options, kMostListedRanks));
  Schedule schedule;
  schedule.name = "double_binary_tree";
  schedule.collective = Collective::kAllReduce;
  schedule.group_size = options.group_size;
  schedule.input_chunks = 2;
  schedule.ops_of = [size = options.group_size](Rank rank) {
    OpList list(2);
    for (const int tree : {0, 1}) {
      AddTree(list, tree, PlaceIn(tree, rank, size));
    }
    return list.Take();
  };
  return InChannels(std::move(schedule), {.slices = options.chunks_per_rank, .in_turn = true});
}

}  // namespace ranklab::collectives
