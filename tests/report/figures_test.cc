#include "report/figures.h"

#include <limits>

#include <gtest/gtest.h>

namespace ranklab::report {
namespace {

TEST(Figures, TheUnitSuitsTheSize) {
  EXPECT_EQ(PrintSeconds(1.234), "1.23 s");
  EXPECT_EQ(PrintSeconds(0.0123), "12.3 ms");
  EXPECT_EQ(PrintSeconds(0.000845), "845 us");
  EXPECT_EQ(PrintSeconds(12e-9), "12.0 ns");
  EXPECT_EQ(PrintSeconds(0.9996), "1.00 s") << "no 1000 ms";
  EXPECT_EQ(PrintSeconds(0), "-");
  EXPECT_EQ(PrintSeconds(std::numeric_limits<double>::quiet_NaN()), "-");
}

TEST(Figures, RatesHaveThreeDigitsThatCount) {
  EXPECT_EQ(PrintRate(12345), "12,300");
  EXPECT_EQ(PrintRate(1234567), "1,230,000");
  EXPECT_EQ(PrintRate(999), "999");
  EXPECT_EQ(PrintRate(9.876), "9.88");
  EXPECT_EQ(PrintRate(0), "-");
}

TEST(Figures, ALossThatRanAwaySaysSo) {
  EXPECT_EQ(PrintLoss(0.01234), "0.0123");
  EXPECT_EQ(PrintLoss(std::numeric_limits<double>::infinity()), "diverged");
}

}  // namespace
}  // namespace ranklab::report
