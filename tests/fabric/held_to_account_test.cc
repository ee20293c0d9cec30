#include "fabric/held_to_account.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ranklab::fabric {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr NetworkClaim kClaim{.port = {.alpha = std::chrono::milliseconds(10), .bandwidth = {1e8}},
                              .body_received = 1'000'000};
constexpr NetworkFigures kKept{.bandwidth_median = 1e8,
                               .bandwidth_samples = 12,
                               .latency_median = std::chrono::milliseconds(10),
                               .latency_samples = 7,
                               .body_received = 1'000'000};

TEST(HoldToAccount, AcceptsANetworkThatKeepsItsWord) {
  const NetworkVerdict verdict = HoldToAccount(kClaim, kKept);
  EXPECT_TRUE(verdict.held());
  EXPECT_THAT(verdict.findings, IsEmpty());
}

TEST(HoldToAccount, AllowsFivePercentOfBandwidthEitherWay) {
  NetworkFigures figures = kKept;
  for (const double inside : {0.951e8, 1.049e8}) {
    figures.bandwidth_median = inside;
    EXPECT_TRUE(HoldToAccount(kClaim, figures).held()) << inside;
  }
  for (const double outside : {0.5e8, 0.949e8, 1.051e8, 2e9}) {
    figures.bandwidth_median = outside;
    EXPECT_FALSE(HoldToAccount(kClaim, figures).bandwidth_held) << outside;
  }
}

// 5 % of 10 ms is 0.5 ms; of 1 ms it is less than the 0.2 ms that is always allowed.
TEST(HoldToAccount, AllowsFivePercentOfLatencyOrTwoTenthsOfAMillisecond) {
  NetworkFigures figures = kKept;
  figures.latency_median = Nanos(10'490'000);
  EXPECT_TRUE(HoldToAccount(kClaim, figures).held());
  figures.latency_median = Nanos(10'510'000);
  EXPECT_FALSE(HoldToAccount(kClaim, figures).latency_held);
  NetworkClaim near = kClaim;
  near.port.alpha = std::chrono::milliseconds(1);
  figures.latency_median = Nanos(1'190'000);
  EXPECT_TRUE(HoldToAccount(near, figures).held());
  figures.latency_median = Nanos(790'000);
  EXPECT_FALSE(HoldToAccount(near, figures).latency_held);
}

TEST(HoldToAccount, CountsEveryByte) {
  NetworkFigures figures = kKept;
  figures.body_received -= 1;
  const NetworkVerdict verdict = HoldToAccount(kClaim, figures);
  EXPECT_FALSE(verdict.held());
  EXPECT_THAT(verdict.findings,
              ElementsAre("999999 bytes arrived where the exchange moves 1000000"));
}

TEST(HoldToAccount, RefusesARunThatTimedNothing) {
  const NetworkVerdict verdict = HoldToAccount(kClaim, {.body_received = 1'000'000});
  EXPECT_FALSE(verdict.held());
  EXPECT_THAT(verdict.findings, ElementsAre(HasSubstr("not shaped")));
}

TEST(HoldToAccount, AsksNothingOfAnEndpointThatReceivesNothing) {
  EXPECT_TRUE(HoldToAccount({.port = kClaim.port}, {}).held());
}

TEST(HoldToAccount, JudgesOnlyTheKindOfMessageThereWas) {
  NetworkFigures large_only = kKept;
  large_only.latency_samples = 0;
  large_only.latency_median = Nanos(0);
  EXPECT_TRUE(HoldToAccount(kClaim, large_only).held());
}

}  // namespace
}  // namespace ranklab::fabric
