#include "coordinator/member_error.h"

namespace ranklab::coordinator {

absl::Status MemberError(int code, const std::string& message) {
  const bool known = code > 0 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return absl::Status(known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown,
                      message.empty() ? "it gave no reason" : message);
}

bool CouldBeALoss(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsAborted(status) || absl::IsDeadlineExceeded(status);
}

int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kUnimplemented:
      return 2;
    default:
      return CouldBeALoss(status) ? 3 : 1;
  }
}

}  // namespace ranklab::coordinator
