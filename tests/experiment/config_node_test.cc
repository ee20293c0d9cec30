#include "experiment/config_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/status.h"
#include "experiment/yaml_parser.h"

namespace ranklab::experiment {
namespace {

ConfigNode Parse(std::string_view text) {
  auto node = ParseYaml(text, "test");
  EXPECT_TRUE(node.ok()) << MessageOf(node.status());
  return node.ok() ? *std::move(node) : ConfigNode{};
}

TEST(ConfigNode, RendersOnOneLineWhatParsesBackToIt) {
  for (const std::string text :
       {"{kind: ps, staleness: 2}", "[1, 2, [a, b]]", "\"1->2\"", "null", "{a: \"x: y\"}", "\"\"",
        "\"say \\\"no\\\"\"", "{link: \"1->2\", latency: 5ms}", "\"-\"", "\"two\\nlines\""}) {
    EXPECT_EQ(Render(Parse(text)), text);
    EXPECT_EQ(Render(Parse(Render(Parse(text)))), text);
  }
}

TEST(ConfigNode, MergesKeyByKey) {
  ConfigNode base = Parse("{train: {steps: 1, learning_rate: 2}, seed: 3}");
  MergeInto(base, Parse("{train: {steps: 9}, fabric: {preset: native}}"));
  EXPECT_EQ(Render(base),
            "{train: {steps: 9, learning_rate: 2}, seed: 3, fabric: {preset: native}}");
}

TEST(ConfigNode, OneBatchDisplacesTheOther) {
  ConfigNode base = Parse("{train: {steps: 1, global_batch: 8}}");
  MergeInto(base, Parse("{train: {batch_per_worker: 2}}"));
  EXPECT_EQ(Render(base), "{train: {steps: 1, batch_per_worker: 2}}");
  MergeInto(base, Parse("{train: {global_batch: 4}}"));
  EXPECT_EQ(Render(base), "{train: {steps: 1, global_batch: 4}}");
}

TEST(ConfigNode, AKindDisplacesWhatBelongsToTheOther) {
  ConfigNode base = Parse(
      "{exchange: {kind: ps, staleness: 2, order: rank, bucket: 1MiB}, "
      "model: {kind: mlp, layers: [1, 2]}}");
  MergeInto(base, Parse("{exchange: {kind: collective}, model: {kind: gpt, hidden: 8}}"));
  EXPECT_EQ(Render(base),
            "{exchange: {kind: collective, bucket: 1MiB}, model: {kind: gpt, hidden: 8}}");
  MergeInto(base, Parse("{exchange: {bucket: 2MiB}}"));
  EXPECT_EQ(Render(base),
            "{exchange: {kind: collective, bucket: 2MiB}, model: {kind: gpt, hidden: 8}}");
}

TEST(ConfigNode, LocatesTheDeepestPlace) {
  const ConfigNode root = Parse("a:\n  b: 1\nc: 2\n");
  EXPECT_EQ(Locate(root, "a.b").line, 2);
  EXPECT_EQ(Locate(root, "a.x.y").line, 2) << "a's map begins there";
  EXPECT_EQ(Locate(root, "c").line, 3);
  EXPECT_EQ(Locate(root, "nothing").line, 1);
}

TEST(ConfigNode, NestsAValueUnderItsPath) {
  EXPECT_EQ(Render(Nest("a.b.c", Parse("[1]"))), "{a: {b: {c: [1]}}}");
}

}  // namespace
}  // namespace ranklab::experiment
