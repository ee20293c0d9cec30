#include "experiment/yaml_parser.h"

#include <string>

#include <gtest/gtest.h>

#include "core/status.h"

namespace ranklab::experiment {
namespace {

std::string Refusal(std::string_view text) {
  const auto node = ParseYaml(text, "f");
  EXPECT_FALSE(node.ok());
  return MessageOf(node.status());
}

TEST(YamlParser, KeepsOrderAndLines) {
  const auto root = ParseYaml("b: 1\na:\n  - x\n  - {y: 2}\n", "f");
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(Render(*root), "{b: 1, a: [x, {y: 2}]}");
  EXPECT_EQ(root->Find("a")->items[1].Find("y")->line, 4);
}

TEST(YamlParser, EmptyValuesAreNull) {
  const auto root = ParseYaml("a:\nb: ~\n", "f");
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(root->Find("a")->kind, ConfigNode::Kind::kNull);
  EXPECT_EQ(root->Find("b")->kind, ConfigNode::Kind::kNull);
}

// Nine levels of ten references each are a billion nodes where references are followed.
TEST(YamlParser, ReferencesAreRefusedBeforeTheyExpand) {
  std::string bomb = "a0: &a0 [x]\n";
  for (int level = 1; level < 10; ++level) {
    const std::string one = "*a" + std::to_string(level - 1);
    bomb += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " [" + one;
    for (int i = 1; i < 10; ++i) {
      bomb += ", " + one;
    }
    bomb += "]\n";
  }
  EXPECT_EQ(Refusal(bomb), "f:1: an anchor (&name); write the value out where it is needed");
  EXPECT_EQ(Refusal("a: *x\n"), "f:1: not YAML: the referenced anchor is not defined");
}

TEST(YamlParser, DepthIsBounded) {
  EXPECT_TRUE(ParseYaml(std::string(16, '[') + std::string(16, ']'), "f").ok());
  EXPECT_EQ(Refusal(std::string(17, '[') + std::string(17, ']')),
            "f:1: deeper than 16 lists and maps");
  EXPECT_FALSE(ParseYaml(std::string(100'000, '['), "f").ok());
}

TEST(YamlParser, SaysWhereTheTextIsNotYaml) {
  EXPECT_EQ(Refusal("a: [1, 2\nb: 3\n").substr(0, 13), "f:2: not YAML");
  EXPECT_EQ(Refusal("{[1]: 2}"), "f:1: a list or map as a key; keys are words");
  EXPECT_EQ(Refusal("a: 1\n\xc3(\n"), "f:2: not text in UTF-8 (byte 0xc3)");
  EXPECT_EQ(Refusal(std::string("a: b\0c", 6)), "f:1: not text in UTF-8 (byte 0x00)");
}

}  // namespace
}  // namespace ranklab::experiment
