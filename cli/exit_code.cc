#include "cli/exit_code.h"

#include <cstdio>

#include "core/status.h"

namespace ranklab::cli {

int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kSuccess;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
      return kLostPeer;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kPermissionDenied:
      return kWrongInput;
    default:
      return kFailedExpectation;
  }
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "ranklab: %s\n", MessageOf(status).c_str());
  return ExitCodeOf(status);
}

}  // namespace ranklab::cli
