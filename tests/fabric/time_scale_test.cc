#include "fabric/time_scale.h"

#include <gtest/gtest.h>

namespace ranklab::fabric {
namespace {

// A step of 10 ms here and 1 ms modelled, 20 ms as held; an exchange and a latency that ask for
// little.
constexpr TimeScaleInputs kInputs{
    .compute = {0.010, 0.001}, .exchange = {0.004, 0.001}, .latency = {30e-6, 10e-6}};

TEST(RoundUpToNiceScale, IsADigitTimesAPowerOfTen) {
  EXPECT_EQ(RoundUpToNiceScale(0), 1);
  EXPECT_EQ(RoundUpToNiceScale(0.3), 1);
  EXPECT_EQ(RoundUpToNiceScale(1), 1);
  EXPECT_EQ(RoundUpToNiceScale(1.01), 1.5);
  EXPECT_EQ(RoundUpToNiceScale(2.5), 3);
  EXPECT_EQ(RoundUpToNiceScale(5.1), 7);
  EXPECT_EQ(RoundUpToNiceScale(1233), 1500);
  EXPECT_EQ(RoundUpToNiceScale(2e6), 2e6);
  EXPECT_EQ(RoundUpToNiceScale(2 + 1e-12), 2);  // 2 but for rounding
}

TEST(ChooseTimeScale, LeavesHeadroomForTheRealStep) {
  EXPECT_EQ(ChooseTimeScale(kInputs), 20);  // twice 10
  TimeScaleInputs slower = kInputs;
  slower.compute.real_seconds = 0.016;  // 32, rounded up
  EXPECT_EQ(ChooseTimeScale(slower), 40);
}

TEST(ChooseTimeScale, KeepsAStepLongAgainstAThreadsWakeUp) {
  TimeScaleInputs quick = kInputs;
  quick.compute = {1e-6, 40e-6};
  EXPECT_EQ(ChooseTimeScale(quick), 500);
}

TEST(ChooseTimeScale, LeavesHeadroomForTheRealExchange) {
  TimeScaleInputs fast = kInputs;
  fast.exchange.modelled_seconds = 10e-6;  // 400 times what the network should take, twice
  EXPECT_EQ(ChooseTimeScale(fast), 1000);
}

TEST(ChooseTimeScale, LeavesHeadroomForTheRealLatency) {
  TimeScaleInputs inputs = kInputs;
  inputs.latency = {90e-6, 2e-6};  // 1.5 x 45 = 67.5, rounded up
  EXPECT_EQ(ChooseTimeScale(inputs), 70);
  inputs.latency = {1, 2e-6};  // it queued: four times what the compute asks for
  EXPECT_EQ(ChooseTimeScale(inputs), 100);
}

TEST(ChooseTimeScale, WhatIsNotModelledHasNoSay) {
  EXPECT_EQ(ChooseTimeScale({.compute = {0.010, 0}, .exchange = {0.004, 0}, .latency = {1, 0}}), 1);
}

TEST(ChooseTimeScale, NeverSpeedsUp) {
  EXPECT_EQ(ChooseTimeScale({.compute = {1e-9, 1}, .exchange = {1e-9, 1}, .latency = {}}), 1);
}

}  // namespace
}  // namespace ranklab::fabric
