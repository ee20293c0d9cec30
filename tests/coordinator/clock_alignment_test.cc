#include "coordinator/clock_alignment.h"

#include <cmath>

#include <gtest/gtest.h>

#include "core/random.h"

namespace ranklab::coordinator {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ClockAlignment, KnowsNothingBeforeTheFirstSample) {
  EXPECT_FALSE(ClockAlignment().At({}).has_value());
}

TEST(ClockAlignment, EqualWaysGiveTheExactOffset) {
  ClockAlignment alignment;
  // The coordinator is 7 s ahead; 100 us there, 100 us back.
  alignment.Add(seconds(1), seconds(8) + microseconds(100), seconds(1) + microseconds(200));
  const auto offset = alignment.At(seconds(1) + microseconds(200));
  ASSERT_TRUE(offset.has_value());
  EXPECT_EQ(offset->offset, seconds(7));
  EXPECT_EQ(offset->residual, microseconds(100));
}

TEST(ClockAlignment, TheQuickestRoundTripOfTheWindowCounts) {
  ClockAlignment alignment({.window = 2, .drift = 0});
  const auto add = [&](Nanos at, Nanos there, Nanos back) {
    alignment.Add(at, at + there + seconds(7), at + there + back);
  };
  add(seconds(1), microseconds(10), microseconds(30));
  add(seconds(2), milliseconds(5), microseconds(50));
  EXPECT_EQ(alignment.At(seconds(3))->residual, microseconds(20));
  add(seconds(3), milliseconds(5), microseconds(50));  // the quick one leaves the window
  EXPECT_GT(alignment.At(seconds(4))->residual, milliseconds(2));
}

TEST(ClockAlignment, AnOldSampleIsWorthLessThanAFreshOneOfTheSameTrip) {
  ClockAlignment alignment({.window = 8, .drift = 100e-6});
  alignment.Add(seconds(0), seconds(0), microseconds(100));
  EXPECT_EQ(alignment.At(seconds(10) + microseconds(100))->residual,
            microseconds(50) + milliseconds(1));
  alignment.Add(seconds(10), seconds(10), seconds(10) + microseconds(200));
  EXPECT_EQ(alignment.At(seconds(10) + microseconds(200))->residual, microseconds(100));
}

TEST(ClockAlignment, AnAnswerBeforeItsQuestionIsDropped) {
  ClockAlignment alignment;
  alignment.Add(seconds(2), seconds(2), seconds(1));
  EXPECT_FALSE(alignment.At(seconds(2)).has_value());
}

// The promise: the true offset lies within the residual, whatever the two ways take and though the
// clocks drift by less than assumed.
TEST(ClockAlignment, TheTrueOffsetIsWithinTheResidualForUnequalWaysAndDrift) {
  const std::uint64_t seed = 20260101;
  SCOPED_TRACE("seed 20260101: membership_test --gtest_filter='ClockAlignment.*'");
  Random random(seed);
  for (int trial = 0; trial < 50; ++trial) {
    const double drift = (random.Uniform() - 0.5) * 180e-6;  // +- 90 ppm
    const double start = (random.Uniform() - 0.5) * 1e9;
    const auto coordinator_at = [&](Nanos local) {
      return Nanos(std::llround(static_cast<double>(local.count()) * (1 + drift) + start));
    };
    ClockAlignment alignment;
    Nanos now{};
    for (int probe = 0; probe < 100; ++probe) {
      now += milliseconds(500);
      const Nanos there(static_cast<std::int64_t>(random.Below(3'000'000)));
      const Nanos back(static_cast<std::int64_t>(random.Below(50'000)));
      alignment.Add(now, coordinator_at(now + there), now + there + back);
      now += there + back;
      const auto offset = alignment.At(now);
      ASSERT_TRUE(offset.has_value());
      const Nanos error = offset->offset - (coordinator_at(now) - now);
      ASSERT_LE(std::abs(error.count()), offset->residual.count() + 2) << "trial " << trial;
    }
  }
}

}  // namespace
}  // namespace ranklab::coordinator
