// Errors as values. Codes carry policy: Unavailable, a peer is gone; Aborted, the generation
// changed; DeadlineExceeded, names whom it waited for; InvalidArgument, the caller's or the lab
// file's fault; FailedPrecondition, calls in the wrong order.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/str_format.h>

namespace ranklab {

// Debian's Abseil has its own string_view; these makers take any format StrFormat takes.
template <typename... Args>
absl::Status MakeError(absl::StatusCode code, const absl::FormatSpec<Args...>& format,
                       const Args&... args) {
  return absl::Status(code, absl::StrFormat(format, args...));
}
template <typename... Args>
absl::Status InvalidArgument(const absl::FormatSpec<Args...>& format, const Args&... args) {
  return MakeError(absl::StatusCode::kInvalidArgument, format, args...);
}
template <typename... Args>
absl::Status FailedPrecondition(const absl::FormatSpec<Args...>& format, const Args&... args) {
  return MakeError(absl::StatusCode::kFailedPrecondition, format, args...);
}
template <typename... Args>
absl::Status Unavailable(const absl::FormatSpec<Args...>& format, const Args&... args) {
  return MakeError(absl::StatusCode::kUnavailable, format, args...);
}
template <typename... Args>
absl::Status Aborted(const absl::FormatSpec<Args...>& format, const Args&... args) {
  return MakeError(absl::StatusCode::kAborted, format, args...);
}
template <typename... Args>
absl::Status DeadlineExceeded(const absl::FormatSpec<Args...>& format, const Args&... args) {
  return MakeError(absl::StatusCode::kDeadlineExceeded, format, args...);
}
template <typename... Args>
absl::Status AlreadyExists(const absl::FormatSpec<Args...>& format, const Args&... args) {
  return MakeError(absl::StatusCode::kAlreadyExists, format, args...);
}
template <typename... Args>
absl::Status NotFound(const absl::FormatSpec<Args...>& format, const Args&... args) {
  return MakeError(absl::StatusCode::kNotFound, format, args...);
}
template <typename... Args>
absl::Status Unimplemented(const absl::FormatSpec<Args...>& format, const Args&... args) {
  return MakeError(absl::StatusCode::kUnimplemented, format, args...);
}
template <typename... Args>
absl::Status ResourceExhausted(const absl::FormatSpec<Args...>& format, const Args&... args) {
  return MakeError(absl::StatusCode::kResourceExhausted, format, args...);
}
template <typename... Args>
absl::Status Internal(const absl::FormatSpec<Args...>& format, const Args&... args) {
  return MakeError(absl::StatusCode::kInternal, format, args...);
}

// The message as a std::string (Abseil's view does not convert to std::string_view).
inline std::string MessageOf(const absl::Status& status) {
  return std::string(status.message().data(), status.message().size());
}

// "context: message", same code. Add what you were doing, once a layer.
inline absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) {
    return status;
  }
  return absl::Status(status.code(), absl::StrFormat("%s: %s", context, MessageOf(status)));
}

}  // namespace ranklab

#define RETURN_IF_ERROR(expression)                                         \
  do {                                                                      \
    if (absl::Status ranklab_status = (expression); !ranklab_status.ok()) { \
      return ranklab_status;                                                \
    }                                                                       \
  } while (false)

#define RANKLAB_CONCAT_INNER(a, b) a##b
#define RANKLAB_CONCAT(a, b) RANKLAB_CONCAT_INNER(a, b)
#define ASSIGN_OR_RETURN(declaration, expression) \
  RANKLAB_ASSIGN_OR_RETURN(RANKLAB_CONCAT(ranklab_result_, __LINE__), declaration, expression)
#define RANKLAB_ASSIGN_OR_RETURN(result, declaration, expression) \
  auto result = (expression);                                     \
  if (!result.ok()) {                                             \
    return std::move(result).status();                            \
  }                                                               \
  declaration = *std::move(result)
