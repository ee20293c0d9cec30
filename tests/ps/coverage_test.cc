#include "ps/coverage.h"

#include <vector>

#include <gtest/gtest.h>

#include "core/random.h"

namespace ranklab::ps {
namespace {

using Found = Coverage::Found;

// Against one flag an element.
TEST(Coverage, AgreesWithAFlagForEveryElement) {
  constexpr std::int64_t kElements = 24;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    Coverage coverage;
    std::vector<bool> flags(kElements, false);
    for (int i = 0; i < 60; ++i) {
      const auto begin = static_cast<std::int64_t>(random.Below(kElements));
      const auto size = static_cast<std::int64_t>(random.Below(
          static_cast<std::uint64_t>(std::min<std::int64_t>(5, kElements - begin + 1))));
      std::int64_t here = 0;
      for (std::int64_t element = begin; element < begin + size; ++element) {
        here += flags[static_cast<std::size_t>(element)] ? 1 : 0;
      }
      const Found expected = here == size ? Found::kAll : here == 0 ? Found::kNone : Found::kSome;
      ASSERT_EQ(coverage.Find({begin, begin + size}), expected) << "seed " << seed;
      if (expected == Found::kNone) {
        coverage.Add({begin, begin + size});
        std::fill_n(flags.begin() + begin, size, true);
      }
    }
  }
}

TEST(Coverage, PartsInAnyOrderMakeAWhole) {
  Coverage coverage;
  for (const KeyRange part : {KeyRange{6, 9}, {0, 3}, {3, 6}}) {
    EXPECT_NE(coverage.Find({0, 9}), Found::kAll);
    coverage.Add(part);
  }
  EXPECT_EQ(coverage.Find({0, 9}), Found::kAll);
  EXPECT_EQ(coverage.Find({0, 10}), Found::kSome);
  coverage.Clear();
  EXPECT_TRUE(coverage.empty());
  EXPECT_EQ(coverage.Find({0, 9}), Found::kNone);
}

}  // namespace
}  // namespace ranklab::ps
