#include "coordinator/grpc_status.h"

#include <grpcpp/support/status.h>

namespace ranklab::coordinator {

grpc::Status ToGrpc(const absl::Status& status) {
  return status.ok()
             ? grpc::Status::OK
             : grpc::Status(static_cast<grpc::StatusCode>(status.code()), MessageOf(status));
}

absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace ranklab::coordinator
