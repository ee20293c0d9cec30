// A barrier: in round k every rank tells the rank 2^k after it what it knows, so that after all
// rounds each has heard of each.
#pragma once

#include <absl/status/statusor.h>

#include "collectives/schedule/build_options.h"
#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

// Steps: ceil(log2 P); no bytes: the one chunk is empty, and only its messages count.
// Source: Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", IJPP 17(1),
// 1988. Errors: as CheckBuildOptions.
absl::StatusOr<Schedule> BuildDisseminationBarrier(const BuildOptions& options);

}  // namespace ranklab::collectives
