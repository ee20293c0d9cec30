#include "core/check.h"

#include <cstdio>
#include <cstdlib>

namespace ranklab {

void FailCheck(const char* condition, const std::string& message, std::source_location where) {
  std::fprintf(stderr, "ranklab: check failed at %s:%u in %s: %s%s%s\n", where.file_name(),
               where.line(), where.function_name(), condition, message.empty() ? "" : ": ",
               message.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace ranklab
