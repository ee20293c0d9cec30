#pragma once

#include <string>
#include <string_view>

#include <absl/status/statusor.h>

#include "collectives/msccl/program.h"

namespace ranklab::collectives {

// The form alone: elements, attributes, numbers, ids in order. Unknown attributes are passed over,
// unknown elements are not.
// Errors: InvalidArgument, with gpu, threadblock and step as far as they are known.
absl::StatusOr<MscclProgram> ReadMscclXml(std::string_view text);

std::string WriteMscclXml(const MscclProgram& program);

}  // namespace ranklab::collectives
