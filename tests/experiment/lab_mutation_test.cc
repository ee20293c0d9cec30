// Any bytes give a lab or one line: good labs with bytes changed, cut, doubled and spliced. A
// failure prints the seed; RANKLAB_MUTATION_SEED=<seed> in the environment replays it alone.
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/random.h"
#include "core/status.h"
#include "experiment/lab_reader.h"

namespace ranklab::experiment {
namespace {

std::string FileText(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void MutateOnce(Random& random, std::string& text) {
  // What YAML, numbers and names are made of, and what they are not.
  constexpr std::string_view kBytes = "{}[]:,-#&*!|>'\"%@`\n\t \\09.azAZ~?<=\x01\x7f\x80\xff";
  const std::size_t at = random.Below(text.size() + 1);
  const std::size_t length = random.Below(12);
  switch (random.Below(5)) {
    case 0:
      text.insert(at, 1, kBytes[random.Below(kBytes.size())]);
      break;
    case 1:
      text.erase(at, length);
      break;
    case 2:
      text.insert(at, text.substr(random.Below(text.size() + 1), length * 4));
      break;
    case 3:
      if (at < text.size()) {
        text[at] = static_cast<char>(random.Below(256));
      }
      break;
    default:
      text.insert(at, std::to_string(static_cast<std::int64_t>(random.Next())));
  }
}

TEST(LabMutation, EveryTextGivesALabOrOneLine) {
  const std::vector<std::string> labs = {FileText("labs/compare.yaml"),
                                         FileText("labs/straggler.yaml")};
  const char* only = std::getenv("RANKLAB_MUTATION_SEED");
  const std::uint64_t first = only == nullptr ? 1 : std::strtoull(only, nullptr, 10);
  const std::uint64_t last = only == nullptr ? 1500 : first;
  int good = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE("RANKLAB_MUTATION_SEED=" + std::to_string(seed) + " lab_mutation_test");
    Random random(seed);
    std::string text = labs[seed % labs.size()];
    for (std::uint64_t i = random.Below(4) + 1; i > 0; --i) {
      MutateOnce(random, text);
    }
    const auto lab = ReadLab(text, "mutant.yaml", {});
    if (lab.ok()) {
      ++good;
      EXPECT_FALSE(lab->parts.empty());
      continue;
    }
    const std::string message = MessageOf(lab.status());
    EXPECT_EQ(lab.status().code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_TRUE(message.starts_with("mutant.yaml")) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  if (only == nullptr) {
    EXPECT_GT(good, 50)
        << "mutants that are still labs show that the others were refused for cause";
    EXPECT_LT(good, 1400);
  }
}

}  // namespace
}  // namespace ranklab::experiment
