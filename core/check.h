// RANKLAB_CHECK: an invariant of the program, on in every build. Never for input, files or the
// network: those are absl::Status.
#pragma once

#include <string>

#include <absl/strings/str_format.h>

namespace ranklab {

// The defaults are the caller's place. Not std::source_location, which clang 14 does not have.
[[noreturn]] void FailCheck(const char* condition, const std::string& message,
                            const char* file = __builtin_FILE(), int line = __builtin_LINE(),
                            const char* function = __builtin_FUNCTION());

}  // namespace ranklab

// RANKLAB_CHECK(rank >= 0) or RANKLAB_CHECK(rank >= 0, "rank %d", rank).
#define RANKLAB_CHECK(condition, ...)                                    \
  do {                                                                   \
    if (!(condition)) [[unlikely]] {                                     \
      ::ranklab::FailCheck(#condition, absl::StrFormat("" __VA_ARGS__)); \
    }                                                                    \
  } while (false)
