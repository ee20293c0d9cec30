// Asks a gRPC server how it is (grpc.health.v1), as container engines and schedulers do.
#pragma once

#include <string>

#include <absl/status/statusor.h>

#include "core/units.h"

namespace ranklab::transport {

// Whether the process at "host:port" says that it serves. Blocks. Errors: Unavailable, nobody
// answered within `timeout`, with the address and gRPC's reason.
absl::StatusOr<bool> AskWhetherServing(const std::string& address, Nanos timeout);

}  // namespace ranklab::transport
