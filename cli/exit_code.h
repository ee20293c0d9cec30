// What a command's exit code says. Every command keeps to it.
#pragma once

#include <absl/status/status.h>

namespace ranklab::cli {

inline constexpr int kSuccess = 0;
inline constexpr int kFailedExpectation = 1;  // or a failed verdict
inline constexpr int kWrongInput = 2;         // a mistake in flags, files or the environment
inline constexpr int kLostPeer = 3;           // or a time-out

int ExitCodeOf(const absl::Status& status);

// "ranklab: MESSAGE" on standard error, one line; returns the exit code.
int Fail(const absl::Status& status);

}  // namespace ranklab::cli
