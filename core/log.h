// One line a message on standard error: "12:03:04.123 worker 2 W connection from a stranger".
// Safe from any thread. Results go to standard output, never here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <absl/strings/str_format.h>

namespace ranklab {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };

// Who speaks ("worker 2") and the least level that is printed; the default is kWarning, "ranklab".
void SetLogName(std::string_view name);
void SetLogLevel(LogLevel level);

void LogLine(LogLevel level, const std::string& line);

template <typename... Args>
void Log(LogLevel level, const absl::FormatSpec<Args...>& format, const Args&... args) {
  LogLine(level, absl::StrFormat(format, args...));
}

}  // namespace ranklab
