#include "collectives/schedule/chain.h"

#include "collectives/schedule/op_list.h"
#include "core/status.h"

namespace ranklab::collectives {

absl::StatusOr<Schedule> BuildChainBroadcast(const BuildOptions& options) {
  RETURN_IF_ERROR(CheckBuildOptions(options, kMostListedRanks));
  const int size = options.group_size;
  Schedule schedule;
  schedule.name = "chain";
  schedule.collective = Collective::kBroadcast;
  schedule.group_size = size;
  schedule.root = options.root;
  schedule.input_chunks = size * options.chunks_per_rank;
  schedule.ops_of = [size, root = options.root, pieces = schedule.input_chunks](Rank rank) {
    OpList list(pieces);
    // All receives begin at once: a piece waits for nothing but its turn on the line.
    for (std::int32_t piece = 0; rank != root && piece < pieces; ++piece) {
      list.Recv((rank + size - 1) % size, {piece});
    }
    const Rank next = (rank + 1) % size;
    for (std::int32_t piece = 0; next != root && piece < pieces; ++piece) {
      list.Send(next, {piece});
    }
    return list.Take();
  };
  return schedule;
}

}  // namespace ranklab::collectives
