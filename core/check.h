// RANKLAB_CHECK: an invariant of the program, on in every build. Never for input, files or the
// network: those are absl::Status.
#pragma once

#include <source_location>
#include <string>

#include <absl/strings/str_format.h>

namespace ranklab {

[[noreturn]] void FailCheck(const char* condition, const std::string& message,
                            std::source_location where);

}  // namespace ranklab

// RANKLAB_CHECK(rank >= 0) or RANKLAB_CHECK(rank >= 0, "rank %d", rank).
#define RANKLAB_CHECK(condition, ...)                                   \
  do {                                                                  \
    if (!(condition)) [[unlikely]] {                                    \
      ::ranklab::FailCheck(#condition, absl::StrFormat("" __VA_ARGS__), \
                           std::source_location::current());            \
    }                                                                   \
  } while (false)
