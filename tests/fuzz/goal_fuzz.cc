// Whatever the text, reading it either says what is wrong or gives a program that survives being
// written and read.
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "sim/goal/goal.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto program =
      ranklab::sim::ReadGoal(std::string_view(reinterpret_cast<const char*>(data), size));
  if (program.ok() && program->ranks.size() < 1000) {
    const std::string text = ranklab::sim::WriteGoal(*program);
    const auto again = ranklab::sim::ReadGoal(text);
    RANKLAB_CHECK(again.ok() && ranklab::sim::WriteGoal(*again) == text, "a program reads back");
  }
  return 0;
}
