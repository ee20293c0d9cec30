// Any bytes are a lab or a refusal of one line. The first byte picks what is read: a lab, a lab's
// override, a live injection.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "core/status.h"
#include "experiment/lab_reader.h"

namespace {

constexpr std::string_view kLab =
    "name: fuzz\nmodel: {kind: mlp, layers: [64, 10]}\ntrain: {steps: 9, global_batch: 8}\n"
    "sweep: {exchange: [{kind: ps}, {kind: collective}], cluster.workers: [1, 2]}\n";

void CheckRefusal(const absl::Status& status) {
  RANKLAB_CHECK(status.ok() || status.code() == absl::StatusCode::kInvalidArgument);
  const std::string message = ranklab::MessageOf(status);
  RANKLAB_CHECK(message.find('\n') == std::string::npos, "two lines: %s", message);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  std::string text;
  for (std::size_t i = 1; i < size; ++i) {
    text += static_cast<char>(data[i]);
  }
  switch (data[0]) {
    case 'o': {
      const std::vector<std::string> overrides = {text};
      CheckRefusal(ranklab::experiment::ReadLab(kLab, "fuzz.yaml", overrides).status());
      break;
    }
    case 'i':
      CheckRefusal(ranklab::experiment::ReadInjection(text).status());
      break;
    default:
      CheckRefusal(ranklab::experiment::ReadLab(text, "fuzz.yaml", {}).status());
  }
  return 0;
}
