// NCCL as this machine has it.
#pragma once

#include <memory>

#include <absl/status/statusor.h>

#include "collectives/nccl/api.h"

namespace ranklab::collectives::nccl {

// Loads libnccl.so.2: it is larger than all of ranklab, comes with the machine, and a machine
// without GPUs has none. Errors: Unimplemented, this build was made without nccl.h; NotFound, there
// is no library here, or one that is too old, by name.
absl::StatusOr<std::unique_ptr<Api>> Load();

}  // namespace ranklab::collectives::nccl
