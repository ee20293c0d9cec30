#include "fabric/time_scale.h"

#include <gtest/gtest.h>

namespace ranklab::fabric {
namespace {

// A machine that moves 2 GB/s, a step of 10 ms here and 1 ms modelled, a network that asks for
// little.
constexpr TimeScaleInputs kInputs{.real_step_seconds = 0.010,
                                  .modelled_compute_seconds = 0.001,
                                  .modelled_port = {0.1e9},
                                  .loopback = {2e9},
                                  .senders = 4};

TEST(RoundUpToNiceScale, IsOneTwoOrFiveTimesAPowerOfTen) {
  EXPECT_EQ(RoundUpToNiceScale(0), 1);
  EXPECT_EQ(RoundUpToNiceScale(0.3), 1);
  EXPECT_EQ(RoundUpToNiceScale(1), 1);
  EXPECT_EQ(RoundUpToNiceScale(1.01), 2);
  EXPECT_EQ(RoundUpToNiceScale(2.5), 5);
  EXPECT_EQ(RoundUpToNiceScale(5.1), 10);
  EXPECT_EQ(RoundUpToNiceScale(1233), 2000);
  EXPECT_EQ(RoundUpToNiceScale(2e6), 2e6);
  EXPECT_EQ(RoundUpToNiceScale(2 + 1e-12), 2);  // 2 but for rounding
}

TEST(ChooseTimeScale, LeavesHeadroomForTheRealStep) {
  EXPECT_EQ(ChooseTimeScale(kInputs), 20);  // twice 10
  TimeScaleInputs slower = kInputs;
  slower.real_step_seconds = 0.016;  // 32, rounded up
  EXPECT_EQ(ChooseTimeScale(slower), 50);
}

// 4 senders of 370.8 GB/s over 2 GB/s of loopback, twice.
TEST(ChooseTimeScale, LeavesHeadroomForTheBytes) {
  TimeScaleInputs fast = kInputs;
  fast.modelled_port = {370.8e9};
  EXPECT_EQ(ChooseTimeScale(fast), 2000);
  fast.senders = 1;
  EXPECT_EQ(ChooseTimeScale(fast), 500);
}

TEST(ChooseTimeScale, IgnoresComputeWhereItIsNative) {
  TimeScaleInputs native = kInputs;
  native.native_compute = true;
  native.modelled_compute_seconds = 0;
  EXPECT_EQ(ChooseTimeScale(native), 1);
}

TEST(ChooseTimeScale, LeavesTheRealLatencyWithinTheModelledOne) {
  TimeScaleInputs inputs = kInputs;
  inputs.modelled_alpha = Nanos(1900);
  EXPECT_EQ(ChooseTimeScale(inputs), 20);  // not measured: no say
  inputs.real_latency = std::chrono::microseconds(80);  // 63, rounded up
  EXPECT_EQ(ChooseTimeScale(inputs), 100);
}

TEST(ChooseTimeScale, NeverSpeedsUp) {
  TimeScaleInputs idle = kInputs;
  idle.real_step_seconds = 1e-9;
  idle.modelled_port = {1};
  EXPECT_EQ(ChooseTimeScale(idle), 1);
}

}  // namespace
}  // namespace ranklab::fabric
