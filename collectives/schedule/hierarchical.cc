#include "collectives/schedule/hierarchical.h"

#include <utility>

#include "collectives/schedule/in_channels.h"
#include "collectives/schedule/op_list.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

// A ring within the group: position i of `size` is rank first + i * stride; block b of the ring is
// `width` chunks from base + b * width.
struct Ring {
  int size = 1;
  int position = 0;
  Rank first = 0;
  int stride = 1;
  std::int32_t base = 0;
  std::int32_t width = 1;

  Rank next() const { return first + (position + 1) % size * stride; }
  Rank previous() const { return first + (position + size - 1) % size * stride; }
  Chunks Block(int number) const { return {base + (number + size) % size * width, width}; }
};

// As in ring.h: position i ends with block i.
void ReduceScatter(OpList& list, const Ring& ring) {
  for (int step = 0; step + 1 < ring.size; ++step) {
    list.Send(ring.next(), ring.Block(ring.position - step - 1));
    list.RecvReduce(ring.previous(), ring.Block(ring.position - step - 2));
  }
}

void AllGather(OpList& list, const Ring& ring) {
  for (int step = 0; step + 1 < ring.size; ++step) {
    list.Send(ring.next(), ring.Block(ring.position - step));
    list.Recv(ring.previous(), ring.Block(ring.position - step - 1));
  }
}

std::vector<Op> ListOf(int group_size, int per_node, Rank rank) {
  const int nodes = group_size / per_node;
  const int node = rank / per_node;
  const int place = rank % per_node;
  const Ring inside = {.size = per_node,
                       .position = place,
                       .first = node * per_node,
                       .stride = 1,
                       .base = 0,
                       .width = nodes};
  const Ring across = {.size = nodes,
                       .position = node,
                       .first = place,
                       .stride = per_node,
                       .base = place * nodes,
                       .width = 1};
  OpList list(group_size);
  ReduceScatter(list, inside);
  ReduceScatter(list, across);
  AllGather(list, across);
  AllGather(list, inside);
  return list.Take();
}

// The smallest divisor that is not below the square root: what the largest one up to it leaves.
int DefaultRanksPerNode(int group_size) {
  int nodes = 1;
  for (int divisor = 1; std::int64_t{divisor} * divisor <= group_size; ++divisor) {
    nodes = group_size % divisor == 0 ? divisor : nodes;
  }
  return group_size / nodes;
}

}  // namespace

int RanksPerNode(const BuildOptions& options) {
  return options.ranks_per_node == 0 ? DefaultRanksPerNode(options.group_size)
                                     : options.ranks_per_node;
}

absl::StatusOr<Schedule> BuildHierarchical(const BuildOptions& options) {
  RETURN_IF_ERROR(CheckBuildOptions(options, kMostListedRanks));
  const int size = options.group_size;
  const int per_node = RanksPerNode(options);
  if (per_node < 1 || size % per_node != 0) {
    return InvalidArgument("%d ranks a node do not divide a group of %d", per_node, size);
  }
  Schedule schedule;
  schedule.name = "hierarchical";
  schedule.collective = Collective::kAllReduce;
  schedule.group_size = size;
  schedule.input_chunks = size;
  schedule.digits = {per_node, size / per_node};
  schedule.ops_of = [size, per_node](Rank rank) { return ListOf(size, per_node, rank); };
  return InChannels(std::move(schedule), {.slices = options.chunks_per_rank});
}

}  // namespace ranklab::collectives
