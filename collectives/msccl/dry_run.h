#pragma once

#include <tuple>
#include <vector>

#include <absl/status/statusor.h>

#include "collectives/msccl/program.h"

namespace ranklab::collectives {

using Connection = std::tuple<Rank, Rank, std::int32_t>;  // from, to, channel

// An order in which all steps of the program can run, as MSCCL would run them: the steps of a
// thread block one after the other, sends without waiting for their receives. Requires: peers and
// dependencies exist. Errors: InvalidArgument, naming gpu, threadblock and step: a message of
// another size than its receive, one that is never received, a step that waits for ever.
absl::StatusOr<std::vector<MscclPlace>> OrderOfSteps(const MscclProgram& program);

}  // namespace ranklab::collectives
