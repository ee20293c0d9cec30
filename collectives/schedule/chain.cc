#include "collectives/schedule/chain.h"

#include <limits>

#include "core/status.h"

namespace ranklab::collectives {
namespace {

// Of the rank that is `place` behind the root.
std::vector<Op> ListOf(int size, int place, Rank rank, std::int32_t pieces) {
  std::vector<Op> list;
  // All receives begin at once: a piece waits for nothing but its turn on the line.
  for (std::int32_t piece = 0; place > 0 && piece < pieces; ++piece) {
    list.push_back({.kind = OpKind::kRecv, .peer = (rank + size - 1) % size, .chunk = piece});
  }
  for (std::int32_t piece = 0; place + 1 < size && piece < pieces; ++piece) {
    list.push_back({.kind = OpKind::kSend, .peer = (rank + 1) % size, .chunk = piece});
    if (place > 0) {
      list.back().after = {piece};  // op k receives piece k
    }
  }
  return list;
}

}  // namespace

absl::StatusOr<Schedule> BuildChainBroadcast(const BuildOptions& options) {
  RETURN_IF_ERROR(CheckBuildOptions(options, std::numeric_limits<int>::max()));
  const int size = options.group_size;
  Schedule schedule;
  schedule.name = "chain";
  schedule.collective = Collective::kBroadcast;
  schedule.group_size = size;
  schedule.root = options.root;
  schedule.input_chunks = size * options.chunks_per_rank;
  schedule.ops_of = [size, root = options.root, pieces = schedule.input_chunks](Rank rank) {
    return ListOf(size, (rank + size - root) % size, rank, pieces);
  };
  return schedule;
}

}  // namespace ranklab::collectives
