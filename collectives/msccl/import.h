// An MSCCL program as a schedule: what ranklab proves, runs and plays.
#pragma once

#include <absl/status/statusor.h>

#include "collectives/msccl/program.h"
#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

// Out of place if the program allows it, else in place. Steps become ops in an order in which they
// can run; a send does not wait for its receive, as in MSCCL, and ops wait for what they share
// chunks with. `rrs` needs a chunk of its own to reduce in: there is more scratch than the program
// has. Each message of Verify about the schedule also names gpu, threadblock and step.
// Errors: InvalidArgument, naming gpu, threadblock and step: chunks outside of a buffer, a peer or
// channel that the thread block does not have, a dependency on nothing, two thread blocks on one
// connection, messages that do not pair up or differ in size, steps that wait for ever, or steps
// that use one chunk without an order between them. Unimplemented, a collective without a promise
// (custom, send, recv).
absl::StatusOr<Schedule> ScheduleOf(const MscclProgram& program);

}  // namespace ranklab::collectives
