// A schedule as an MSCCL program.
#pragma once

#include <absl/status/statusor.h>

#include "collectives/msccl/program.h"
#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

// A thread block for each direction of each pair of ranks and channel, and one for local ops; the
// channels are the schedule's. What two thread blocks share is ordered by dependencies, with nops
// where a step needs more than one.
// Requires: Verify(schedule) is Ok.
// Errors: Unimplemented, a collective that MSCCL has no name for, or a root other than rank 0.
absl::StatusOr<MscclProgram> ProgramOf(const Schedule& schedule);

}  // namespace ranklab::collectives
