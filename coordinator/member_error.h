// What members report when they cannot go on, and what it means for the lab.
#pragma once

#include <string>

#include <absl/status/status.h>

namespace ranklab::coordinator {

// Members say codes as numbers; an error without a known code is Unknown. Never Ok.
absl::Status MemberError(int code, const std::string& message);

// Could be what a lost peer does to those who wait for it: Unavailable, Aborted, DeadlineExceeded.
bool CouldBeALoss(const absl::Status& status);

// 0; 2, a mistake in the input (InvalidArgument, NotFound, Unimplemented); 3, a lost peer or a
// time-out; 1, anything else.
int ExitCodeOf(const absl::Status& status);

}  // namespace ranklab::coordinator
