// Data of tokens: grammar and text.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <numbers>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "compute/operations.h"
#include "core/status.h"
#include "worker/grammar.h"
#include "worker/text.h"

namespace ranklab::worker {
namespace {

using compute::kNoTarget;
using testing::ElementsAre;
using testing::HasSubstr;

experiment::DataSpec GrammarSpec() {
  experiment::DataSpec spec;
  spec.kind = "grammar";
  spec.samples = 400;
  spec.vocabulary = 6;
  spec.branching = 3;
  spec.context = 32;
  return spec;
}

TEST(EntropyOf, IsTheSumOverTheProbabilities) {
  EXPECT_EQ(EntropyOf(1), 0);
  EXPECT_DOUBLE_EQ(EntropyOf(2), std::numbers::ln2);
  // 1/2, 1/4, 1/8, 1/8.
  EXPECT_DOUBLE_EQ(EntropyOf(4), 0.5 * std::log(2) + 0.25 * std::log(4) + 0.25 * std::log(8));
}

// Counts of what follows each pair, over all targets of a split.
std::map<std::pair<int, int>, std::map<int, int>> SuccessorsIn(const Split& split, int context) {
  std::map<std::pair<int, int>, std::map<int, int>> seen;
  for (std::size_t i = 0; i < split.labels.size(); ++i) {
    if (split.labels[i] != kNoTarget) {
      EXPECT_GT(i % context, 0U) << "the first position has no target";
      ++seen[{split.tokens[i - 1], split.tokens[i]}][split.labels[i]];
    }
  }
  return seen;
}

TEST(Grammar, EveryPairHasItsSuccessorsWithHalvingProbabilities) {
  const auto data = MakeGrammar(GrammarSpec());
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->train.samples(), 400);
  EXPECT_EQ(data->test.samples(), 100);
  EXPECT_EQ(data->train.CountTargets(), 400 * 31);
  const auto seen = SuccessorsIn(data->train, 32);
  EXPECT_EQ(seen.size(), 36U);
  std::vector<double> shares(3, 0.0);
  double total = 0;
  for (const auto& [pair, counts] : seen) {
    ASSERT_LE(counts.size(), 3U);
    std::vector<int> sorted;
    for (const auto& [token, count] : counts) {
      sorted.push_back(count);
    }
    std::sort(sorted.rbegin(), sorted.rend());
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      shares[i] += sorted[i];
      total += sorted[i];
    }
  }
  EXPECT_NEAR(shares[0] / total, 0.5, 0.02);
  EXPECT_NEAR(shares[1] / total, 0.25, 0.03);
}

// The cross entropy of the true distribution over the test split is the floor, up to its sampling.
TEST(Grammar, TheFloorIsTheLossOfTheSourceItself) {
  experiment::DataSpec spec = GrammarSpec();
  spec.samples = 8000;
  const auto data = MakeGrammar(spec);
  ASSERT_TRUE(data.ok());
  ASSERT_TRUE(data->loss_floor.has_value());
  EXPECT_DOUBLE_EQ(*data->loss_floor, 1.5 * std::numbers::ln2);
  const auto train = SuccessorsIn(data->train, 32);
  double loss = 0;
  double targets = 0;
  for (const auto& [pair, counts] : SuccessorsIn(data->test, 32)) {
    double of_pair = 0;
    for (const auto& [token, count] : train.at(pair)) {
      of_pair += count;
    }
    for (const auto& [token, count] : counts) {
      loss -= count * std::log(train.at(pair).at(token) / of_pair);
      targets += count;
    }
  }
  EXPECT_NEAR(loss / targets, *data->loss_floor, 0.01);
}

TEST(Grammar, ShorterSamplesArePaddedWithoutTargets) {
  experiment::DataSpec spec = GrammarSpec();
  spec.shortest = 4;
  const auto data = MakeGrammar(spec);
  ASSERT_TRUE(data.ok());
  std::set<std::int64_t> lengths;
  for (std::int64_t sample = 0; sample < data->train.samples(); ++sample) {
    std::int64_t length = 1;
    for (std::int64_t i = 1; i < 32; ++i) {
      const std::int32_t label = data->train.labels[sample * 32 + i];
      if (label != kNoTarget) {
        EXPECT_EQ(i, length) << "targets are in one piece";
        ++length;
      }
    }
    lengths.insert(length);
  }
  EXPECT_EQ(*lengths.begin(), 4);
  EXPECT_EQ(*lengths.rbegin(), 32);
  EXPECT_GT(lengths.size(), 20U);
}

TEST(Grammar, FollowsFromItsSeedAlone) {
  experiment::DataSpec spec = GrammarSpec();
  const auto one = MakeGrammar(spec);
  const auto again = MakeGrammar(spec);
  spec.split_seed = 2;
  const auto other = MakeGrammar(spec);
  ASSERT_TRUE(one.ok() && again.ok() && other.ok());
  EXPECT_EQ(one->train.tokens, again->train.tokens);
  EXPECT_EQ(one->test.labels, again->test.labels);
  EXPECT_NE(one->train.tokens, other->train.tokens);
}

TEST(Grammar, SaysWhatIsOutOfRange) {
  const auto refusal = [](auto change) {
    experiment::DataSpec spec = GrammarSpec();
    change(spec);
    return MessageOf(MakeGrammar(spec).status());
  };
  EXPECT_THAT(refusal([](auto& spec) { spec.context = 1; }), HasSubstr("400 samples of 1 tokens"));
  EXPECT_THAT(refusal([](auto& spec) { spec.branching = 7; }), HasSubstr("with 7 successors"));
  EXPECT_THAT(refusal([](auto& spec) { spec.branching = 1; }), HasSubstr("with 1 successors"))
      << "its floor is 0, as of data whose floor nobody knows";
  EXPECT_THAT(refusal([](auto& spec) { spec.shortest = 33; }), HasSubstr("33 tokens; 2 to 32"));
}

class TextTest : public testing::Test {
 protected:
  TextTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("ranklab_text_test_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
    spec_.kind = "text";
    spec_.file = "some.bin";
    spec_.context = 4;
  }
  ~TextTest() override { std::filesystem::remove_all(folder_); }
  absl::StatusOr<Dataset> Load(const std::string& bytes) {
    std::ofstream(folder_ / "some.bin", std::ios::binary) << bytes;
    return LoadText(spec_, folder_.string());
  }
  std::filesystem::path folder_;
  experiment::DataSpec spec_;
};

TEST_F(TextTest, BytesAreTokensAndTheNextOnesTargets) {
  const auto data = Load(
      "abcdefgh\xff"
      "12");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->inputs, 4);
  EXPECT_EQ(data->classes, 256);
  EXPECT_FALSE(data->loss_floor.has_value());
  EXPECT_THAT(data->train.tokens, ElementsAre('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'));
  EXPECT_THAT(data->train.labels, ElementsAre('b', 'c', 'd', 'e', 'f', 'g', 'h', 255));
  EXPECT_THAT(data->test.tokens, ElementsAre(255, '1', 0, 0));
  EXPECT_THAT(data->test.labels, ElementsAre('1', '2', kNoTarget, kNoTarget));
  EXPECT_EQ(data->test.CountTargets(), 2);
}

TEST_F(TextTest, ATenthIsHeldOut) {
  const auto data = Load(std::string(4 * 30 + 1, 'x'));
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(data->train.samples(), 27);
  EXPECT_EQ(data->test.samples(), 3);
}

TEST_F(TextTest, SaysWhichFileIsMissingOrTooShort) {
  const auto missing = LoadText(spec_, folder_.string());
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(missing.status()), HasSubstr("some.bin"));
  const auto short_one = Load("abcde");
  EXPECT_EQ(short_one.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(short_one.status()), HasSubstr("5 bytes; at least 6"));
  EXPECT_TRUE(Load("abcdef").ok());
}

}  // namespace
}  // namespace ranklab::worker
