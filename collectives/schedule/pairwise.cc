#include "collectives/schedule/pairwise.h"

#include "collectives/schedule/op_list.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

absl::StatusOr<Schedule> Build(Collective collective, const BuildOptions& options) {
  RETURN_IF_ERROR(CheckBuildOptions(options, kMostListedRanks));
  const int size = options.group_size;
  Schedule schedule;
  schedule.name = "pairwise";
  schedule.collective = collective;
  schedule.group_size = size;
  schedule.input_chunks = size;
  schedule.output_chunks = size;
  schedule.digits = {size};
  schedule.ops_of = [size](Rank rank) {
    OpList list(2 * size);
    list.Copy({size + rank}, rank);
    for (int step = 1; step < size; ++step) {
      const Rank to = (rank + step) % size;
      const Rank from = (rank - step + size) % size;
      list.Send(to, {to});
      list.Recv(from, {size + from});
    }
    return list.Take();
  };
  return schedule;
}

}  // namespace

absl::StatusOr<Schedule> BuildPairwiseAllToAll(const BuildOptions& options) {
  return Build(Collective::kAllToAll, options);
}
absl::StatusOr<Schedule> BuildPairwiseAllToAllV(const BuildOptions& options) {
  return Build(Collective::kAllToAllV, options);
}

}  // namespace ranklab::collectives
