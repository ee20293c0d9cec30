#include "core/check.h"

#include <cstdio>
#include <cstdlib>

namespace ranklab {

void FailCheck(const char* condition, const std::string& message, const char* file, int line,
               const char* function) {
  std::fprintf(stderr, "ranklab: check failed at %s:%d in %s: %s%s%s\n", file, line, function,
               condition, message.empty() ? "" : ": ", message.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace ranklab
