#include "core/nearest.h"

#include <array>

#include <gtest/gtest.h>

namespace ranklab {
namespace {

constexpr std::array<std::string_view, 4> kAlgorithms = {"ring", "tree", "halving_doubling",
                                                         "hierarchical"};

TEST(Nearest, FindsTheWordBehindATypingMistake) {
  EXPECT_EQ(Nearest("rign", kAlgorithms), "ring");
  EXPECT_EQ(Nearest("rin", kAlgorithms), "ring");
  EXPECT_EQ(Nearest("treee", kAlgorithms), "tree");
  EXPECT_EQ(Nearest("halving-doubling", kAlgorithms), "halving_doubling");
  EXPECT_EQ(Nearest("hierachical", kAlgorithms), "hierarchical");
}

TEST(Nearest, IgnoresCase) { EXPECT_EQ(Nearest("RING", kAlgorithms), "ring"); }

TEST(Nearest, StaysSilentWhenNothingIsNear) {
  EXPECT_EQ(Nearest("butterfly", kAlgorithms), "");
  EXPECT_EQ(Nearest("", kAlgorithms), "");
  EXPECT_EQ(Nearest("ring", {}), "");
}

TEST(Nearest, PrefersTheFirstOfEquals) {
  constexpr std::array<std::string_view, 2> kNames = {"nvlink3", "nvlink4"};
  EXPECT_EQ(Nearest("nvlink9", kNames), "nvlink3");
}

// A swap costs one step, so "ab" for "ba" is nearer than two replacements away.
TEST(Nearest, CountsASwapOfNeighboursAsOneMistake) {
  constexpr std::array<std::string_view, 2> kWords = {"form_", "from"};
  EXPECT_EQ(Nearest("form", kWords), "form_");
  constexpr std::array<std::string_view, 2> kSwapped = {"fxxm", "from"};
  EXPECT_EQ(Nearest("form", kSwapped), "from");
}

TEST(DidYouMean, IsASentenceToAppend) {
  EXPECT_EQ(DidYouMean("rign", kAlgorithms), "; did you mean \"ring\"?");
  EXPECT_EQ(DidYouMean("butterfly", kAlgorithms), "");
}

TEST(OneOf, ListsWhatWouldBeRight) {
  EXPECT_EQ(OneOf(kAlgorithms), "one of ring, tree, halving_doubling, hierarchical");
}

}  // namespace
}  // namespace ranklab
