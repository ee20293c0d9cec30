// Errors across processes: absl's codes are gRPC's codes, number by number.
#pragma once

#include <string>

#include <absl/status/status.h>

#include "core/status.h"

namespace grpc {
class Status;
}

namespace ranklab::coordinator {

grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace ranklab::coordinator
