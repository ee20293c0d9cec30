#include "ps/placement.h"

#include <gtest/gtest.h>

namespace ranklab::ps {
namespace {

TEST(CutEvenly, RangesAreConsecutiveAndDifferByAtMostOne) {
  for (const std::int64_t elements : {0LL, 1LL, 2LL, 7LL, 8LL, 9LL, 1'000'003LL, 5LL << 30}) {
    for (const int servers : {1, 2, 3, 4, 5, 7, 8, 16}) {
      const std::vector<KeyRange> ranges = CutEvenly(elements, servers);
      ASSERT_EQ(ranges.size(), static_cast<std::size_t>(servers));
      EXPECT_EQ(ranges.front().begin, 0);
      EXPECT_EQ(ranges.back().end, elements);
      for (std::size_t i = 0; i < ranges.size(); ++i) {
        EXPECT_GE(ranges[i].size(), elements / servers);
        EXPECT_LE(ranges[i].size(), elements / servers + 1);
        if (i > 0) {
          EXPECT_EQ(ranges[i].begin, ranges[i - 1].end);
        }
      }
    }
  }
}

TEST(Intersect, GivesEachServersPieceAndLeavesEmptyOnesOut) {
  const std::vector<KeyRange> ranges = CutEvenly(10, 3);  // [0, 4) [4, 7) [7, 10)
  using Pieces = std::vector<std::pair<Rank, KeyRange>>;
  EXPECT_EQ(Intersect(ranges, {0, 10}), (Pieces{{0, {0, 4}}, {1, {4, 7}}, {2, {7, 10}}}));
  EXPECT_EQ(Intersect(ranges, {3, 8}), (Pieces{{0, {3, 4}}, {1, {4, 7}}, {2, {7, 8}}}));
  EXPECT_EQ(Intersect(ranges, {4, 7}), (Pieces{{1, {4, 7}}}));
  EXPECT_EQ(Intersect(ranges, {5, 5}), Pieces{});
  EXPECT_EQ(Intersect(CutEvenly(2, 4), {0, 2}), (Pieces{{0, {0, 1}}, {1, {1, 2}}}));
}

}  // namespace
}  // namespace ranklab::ps
