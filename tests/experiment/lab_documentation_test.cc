// docs/lab_file.md and labs/ cannot rot: every block and every lab is read.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/status.h"
#include "experiment/lab_reader.h"

namespace ranklab::experiment {
namespace {

struct Block {
  int line = 0;
  bool whole = false;  // a lab by itself, or sections that replace those of a small one
  std::string text{};
};

std::vector<Block> BlocksOf(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::vector<Block> blocks;
  bool inside = false;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.starts_with("```yaml")) {
      EXPECT_TRUE(line == "```yaml lab" || line == "```yaml section") << path << ":" << number;
      blocks.push_back({.line = number, .whole = line == "```yaml lab"});
      inside = true;
    } else if (line == "```") {
      inside = false;
    } else if (inside) {
      blocks.back().text += line + "\n";
    }
  }
  return blocks;
}

// The sections of a small lab that the block does not give.
std::string Completed(const std::string& block) {
  std::string text = block;
  for (const std::string section :
       {"name: example", "model: {kind: mlp, layers: [64, 32, 10]}", "data: {kind: digits}",
        "train: {steps: 10, global_batch: 64}"}) {
    const std::string key = section.substr(0, section.find(':') + 1);
    if (("\n" + block).find("\n" + key) == std::string::npos) {
      text += section + "\n";
    }
  }
  return text;
}

TEST(LabFileDocumentation, EveryBlockIsRead) {
  const std::vector<Block> blocks = BlocksOf("docs/lab_file.md");
  EXPECT_GE(blocks.size(), 12U);
  for (const Block& block : blocks) {
    const auto lab =
        ReadLab(block.whole ? block.text : Completed(block.text), "docs/lab_file.md", {});
    EXPECT_TRUE(lab.ok()) << "block at line " << block.line << ": " << MessageOf(lab.status());
  }
}

TEST(LabFileDocumentation, EveryLabIsRead) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("labs")) {
    if (entry.path().extension() == ".yaml") {
      ++count;
      const auto lab = ReadLabFile(entry.path().string(), {});
      EXPECT_TRUE(lab.ok()) << MessageOf(lab.status());
    }
  }
  EXPECT_GE(count, 2);
}

}  // namespace
}  // namespace ranklab::experiment
