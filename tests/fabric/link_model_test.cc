#include "fabric/link_model.h"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace ranklab::fabric {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Bandwidth kGigabyte{1e9};  // 1 byte a nanosecond
constexpr LinkSpec kPort{.alpha = Nanos(5000), .bandwidth = kGigabyte};
constexpr LinkSpec kReceivingPort{.bandwidth = kGigabyte};

Passage Depart(LinkModel& link, Nanos now, Bytes size) {
  const std::array links{&link};
  return Path::Depart(now, size, links);
}

Passage Arrive(LinkModel& link, Nanos reaches, Nanos floor_arrives, Bytes size) {
  const std::array links{&link};
  return Path::Arrive(reaches, floor_arrives, size, links);
}

TEST(TransferTime, IsSizeOverBandwidthToTheNanosecond) {
  EXPECT_EQ(TransferTime(0, kGigabyte), Nanos(0));
  EXPECT_EQ(TransferTime(1'000'000, kGigabyte), milliseconds(1));
  EXPECT_EQ(TransferTime(1, {3e9}), Nanos(0));
  EXPECT_EQ(TransferTime(2, {3e9}), Nanos(1));
  EXPECT_EQ(TransferTime(1 << 20, {std::numeric_limits<double>::infinity()}), Nanos(0));
}

TEST(TransferTime, CarriesATerabyteOverAnySlowLink) {
  constexpr Bytes kTerabyte = 1'000'000'000'000;
  EXPECT_EQ(TransferTime(kTerabyte, kGigabyte), std::chrono::seconds(1000));
  EXPECT_EQ(TransferTime(kTerabyte, {1e3}), std::chrono::seconds(1'000'000'000));
  EXPECT_EQ(TransferTime(kTerabyte, {1.0}), Nanos::max());
  EXPECT_EQ(TransferTime(std::numeric_limits<Bytes>::max(), {1e-300}), Nanos::max());
}

TEST(Depart, OnAnIdleLinkTakesAlphaAndTheBytes) {
  LinkModel link(kPort, 1);
  const Passage passage = Depart(link, Nanos(100), 2000);
  EXPECT_EQ(passage.starts, Nanos(100));
  EXPECT_EQ(passage.leaves, Nanos(2100));
  EXPECT_EQ(passage.arrives, Nanos(7100));
  EXPECT_EQ(link.busy_until(), Nanos(2100));
}

// Alpha is paid by each message but holds the port for none of them: N in a row, alpha + N n / B.
TEST(Depart, BackToBackMessagesHoldThePortOnlyForTheirBytes) {
  LinkModel link(kPort, 1);
  Passage last;
  for (int i = 0; i < 10; ++i) {
    last = Depart(link, Nanos(0), 1000);
  }
  EXPECT_EQ(last.starts, Nanos(9000));
  EXPECT_EQ(last.arrives, Nanos(5000 + 10 * 1000));
}

TEST(Depart, AnEmptyMessageCostsAlpha) {
  LinkModel link(kPort, 1);
  EXPECT_EQ(Depart(link, Nanos(7), 0).arrives, Nanos(5007));
  EXPECT_EQ(link.busy_until(), Nanos(7));
}

TEST(Depart, TheSlowestLinkOfThePathCountsOnceAndAlphasAddUp) {
  LinkModel port(kPort, 1);
  LinkModel link({.alpha = Nanos(300), .bandwidth = {0.25e9}}, 2);
  const std::array links{&port, &link};
  const Passage passage = Path::Depart(Nanos(0), 1000, links);
  EXPECT_EQ(passage.starts, Nanos(0));
  EXPECT_EQ(passage.leaves, Nanos(4000));
  EXPECT_EQ(passage.arrives, Nanos(4000 + 5000 + 300));
}

// A slow link to one peer holds the shared port only as long as the port itself takes.
TEST(Depart, ASlowLinkDoesNotHoldUpMessagesToOtherPeers) {
  LinkModel port(kPort, 1);
  LinkModel slow({.bandwidth = {0.1e9}}, 2);
  const std::array to_slow{&port, &slow};
  Path::Depart(Nanos(0), 1000, to_slow);
  const Passage second_to_slow = Path::Depart(Nanos(0), 1000, to_slow);
  EXPECT_EQ(second_to_slow.starts, Nanos(10'000));
  EXPECT_EQ(second_to_slow.leaves, Nanos(20'000));
  EXPECT_EQ(Depart(port, Nanos(0), 1000).starts, Nanos(2000));
}

TEST(Arrive, SendersShareTheReceiversPort) {
  constexpr int kSenders = 4;
  LinkModel receiver(kReceivingPort, 9);
  Nanos last{};
  for (int i = 0; i < kSenders; ++i) {
    LinkModel sender(kPort, i);
    const Passage out = Depart(sender, Nanos(0), 1000);
    last = Arrive(receiver, out.starts + kPort.alpha, out.arrives, 1000).arrives;
    EXPECT_EQ(last, Nanos(5000 + 1000 * (i + 1)));
  }
}

TEST(Arrive, IsNeverBeforeWhatTheSenderAllows) {
  LinkModel receiver(kReceivingPort, 1);
  const Passage passage = Arrive(receiver, Nanos(5000), Nanos(90'000), 1000);
  EXPECT_EQ(passage.arrives, Nanos(90'000));
  EXPECT_EQ(receiver.busy_until(), Nanos(6000));  // a late message does not hold up the others
}

TEST(Reshape, HoldsForLaterMessagesOnly) {
  LinkModel link(kPort, 1);
  const Passage before = Depart(link, Nanos(0), 1000);
  link.Reshape({.alpha = Nanos(100), .bandwidth = {0.5e9}});
  EXPECT_EQ(link.busy_until(), before.leaves);
  const Passage after = Depart(link, Nanos(0), 1000);
  EXPECT_EQ(after.starts, before.leaves);
  EXPECT_EQ(after.leaves, before.leaves + Nanos(2000));
  EXPECT_EQ(after.arrives, after.leaves + Nanos(100));
}

TEST(Saturation, InstantsStayAtTheEndOfTimeInsteadOfWrapping) {
  LinkModel link({.alpha = Nanos::max(), .bandwidth = {1.0}}, 1);
  const Passage first = Depart(link, Nanos(1), 1'000'000'000'000);
  EXPECT_EQ(first.leaves, Nanos::max());
  EXPECT_EQ(first.arrives, Nanos::max());
  const Passage second = Depart(link, Nanos(2), 1);
  EXPECT_EQ(second.starts, Nanos::max());
  EXPECT_EQ(second.arrives, Nanos::max());
}

// 20,000 uniform draws: the mean of U(0, 1 ms) is 0.5 ms with a standard error of 2 us.
TEST(Jitter, IsUniformWithinItsBound) {
  LinkModel link({.bandwidth = kGigabyte, .jitter = milliseconds(1)}, 17);
  constexpr int kMessages = 20'000;
  double sum = 0;
  Nanos least = Nanos::max();
  Nanos most{};
  for (int i = 0; i < kMessages; ++i) {
    const Passage passage = Depart(link, Nanos(0), 0);
    const Nanos added = passage.arrives - passage.leaves;
    ASSERT_GE(added, Nanos(0));
    ASSERT_LE(added, milliseconds(1));
    sum += static_cast<double>(added.count());
    least = std::min(least, added);
    most = std::max(most, added);
  }
  EXPECT_NEAR(sum / kMessages, 500'000, 10'000);
  EXPECT_LT(least, microseconds(5));
  EXPECT_GT(most, microseconds(995));
}

// Losses are geometric: p / (1 - p) time-outs a message in the mean (0.25 for p = 0.2, standard
// error 0.004 over 20,000).
TEST(Loss, CostsARetransmissionTimeOutEach) {
  const LinkSpec lossy{
      .bandwidth = kGigabyte, .loss_probability = 0.2, .retransmit_after = milliseconds(200)};
  LinkModel link(lossy, 23);
  constexpr int kMessages = 20'000;
  std::int64_t losses = 0;
  for (int i = 0; i < kMessages; ++i) {
    const Passage passage = Depart(link, Nanos(0), 0);
    const Nanos added = passage.arrives - passage.leaves;
    ASSERT_EQ(added % milliseconds(200), Nanos(0));
    losses += added / milliseconds(200);
  }
  EXPECT_NEAR(static_cast<double>(losses) / kMessages, 0.25, 0.02);
}

TEST(Loss, OfEveryMessageEndsAfterFifteenRetransmissions) {
  LinkModel link({.bandwidth = kGigabyte, .loss_probability = 1, .retransmit_after = Nanos(10)}, 1);
  EXPECT_EQ(Depart(link, Nanos(0), 0).arrives, Nanos(150));
}

TEST(Seed, DecidesJitterAndLoss) {
  const LinkSpec spec{.alpha = Nanos(10),
                      .bandwidth = kGigabyte,
                      .jitter = milliseconds(1),
                      .loss_probability = 0.1,
                      .retransmit_after = milliseconds(5)};
  const auto arrivals = [&spec](std::uint64_t seed) {
    LinkModel link(spec, seed);
    std::vector<Nanos> seen;
    for (int i = 0; i < 50; ++i) {
      seen.push_back(Depart(link, Nanos(i), 100).arrives);
    }
    return seen;
  };
  EXPECT_EQ(arrivals(1), arrivals(1));
  EXPECT_NE(arrivals(1), arrivals(2));
}

}  // namespace
}  // namespace ranklab::fabric
