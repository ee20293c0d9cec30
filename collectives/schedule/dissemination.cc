#include "collectives/schedule/dissemination.h"

#include "collectives/schedule/folding.h"
#include "collectives/schedule/op_list.h"
#include "core/status.h"

namespace ranklab::collectives {

absl::StatusOr<Schedule> BuildDisseminationBarrier(const BuildOptions& options) {
  RETURN_IF_ERROR(CheckBuildOptions(options, kMostListedRanks));
  const int size = options.group_size;
  Schedule schedule;
  schedule.name = "dissemination";
  schedule.collective = Collective::kBarrier;
  schedule.group_size = size;
  schedule.input_chunks = 1;
  schedule.digits = {size};
  schedule.scratch_chunks = CeilLog2(size);  // what arrives in each round
  schedule.scratch_like = [](Rank, std::int32_t) { return 0; };
  schedule.ops_of = [size](Rank rank) {
    OpList list(1 + CeilLog2(size));
    std::int32_t arrived = 1;
    for (int distance = 1; distance < size; distance *= 2, ++arrived) {
      list.Send((rank + distance) % size, {0});
      list.Recv((rank - distance + size) % size, {arrived});
      list.Reduce({0}, arrived);
    }
    return list.Take();
  };
  return schedule;
}

}  // namespace ranklab::collectives
