#include "core/log.h"

#include <chrono>
#include <cstdio>
#include <ctime>

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

namespace ranklab {
namespace {

struct LogState {
  absl::Mutex mutex;
  std::string name ABSL_GUARDED_BY(mutex) = "ranklab";
  LogLevel least ABSL_GUARDED_BY(mutex) = LogLevel::kWarning;
};

LogState& State() {
  static LogState state;
  return state;
}

}  // namespace

void SetLogName(std::string_view name) {
  LogState& state = State();
  absl::MutexLock lock(&state.mutex);
  state.name = std::string(name);
}

void SetLogLevel(LogLevel level) {
  LogState& state = State();
  absl::MutexLock lock(&state.mutex);
  state.least = level;
}

void LogLine(LogLevel level, const std::string& line) {
  LogState& state = State();
  absl::MutexLock lock(&state.mutex);
  if (level < state.least) {
    return;
  }
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto millis =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts{};
  localtime_r(&seconds, &parts);
  std::fprintf(stderr, "%02d:%02d:%02d.%03d %s %c %s\n", parts.tm_hour, parts.tm_min, parts.tm_sec,
               static_cast<int>(millis), state.name.c_str(), "DIWE"[static_cast<int>(level)],
               line.c_str());
}

}  // namespace ranklab
