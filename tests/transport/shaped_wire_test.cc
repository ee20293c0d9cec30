#include "transport/shaped_wire.h"

#include <chrono>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/transport/shaped_cluster.h"

namespace ranklab::transport {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Endpoint kA{Role::kWorker, 0};
constexpr Endpoint kB{Role::kWorker, 1};
constexpr Endpoint kC{Role::kWorker, 2};

// 1 byte a nanosecond, 5 us.
constexpr ShapeOptions kShape{.port = {.alpha = Nanos(5000), .bandwidth = {1e9}}};

TEST(ShapedWire, AMessageTakesAlphaAndItsBytes) {
  ShapedCluster cluster(kShape);
  cluster.At(kB);
  cluster.At(kA).Send(kB, 1'000'000);
  cluster.Run();
  EXPECT_THAT(cluster.At(kB).ArrivalTimes(), ElementsAre(Nanos(1'005'000)));
}

TEST(ShapedWire, BackToBackMessagesPayAlphaSideBySide) {
  ShapedCluster cluster(kShape);
  cluster.At(kB);
  for (int i = 0; i < 3; ++i) {
    cluster.At(kA).Send(kB, 1000);
  }
  cluster.Run();
  EXPECT_THAT(cluster.At(kB).ArrivalTimes(), ElementsAre(Nanos(6000), Nanos(7000), Nanos(8000)));
}

TEST(ShapedWire, SentRunsWhenTheLastByteHasLeftThePort) {
  ShapedCluster cluster(kShape);
  cluster.At(kB);
  cluster.At(kA).Send(kB, 1000);
  cluster.At(kA).Send(kB, 2000);
  cluster.Run();
  ASSERT_THAT(cluster.At(kA).sent, SizeIs(2));
  EXPECT_EQ(cluster.At(kA).sent[0], std::make_pair(Nanos(1000), absl::OkStatus()));
  EXPECT_EQ(cluster.At(kA).sent[1], std::make_pair(Nanos(3000), absl::OkStatus()));
}

TEST(ShapedWire, AMessageEntersTheWireWhenThePortIsFree) {
  ShapedCluster cluster(kShape);
  cluster.At(kB);
  cluster.At(kA).Send(kB, 1000);
  cluster.At(kA).Send(kB, 1000);
  cluster.loop().RunUntil(Nanos(999));
  EXPECT_THAT(cluster.At(kB).accepted, SizeIs(1));
  cluster.Run();
  EXPECT_EQ(cluster.At(kB).accepted.at(1).departs, Nanos(1000));
}

// N senders of n bytes into one receiver: alpha + N n / B.
TEST(ShapedWire, SendersShareTheReceiversPort) {
  constexpr int kSenders = 8;
  ShapedCluster cluster(kShape);
  cluster.At(kA);
  for (Rank rank = 1; rank <= kSenders; ++rank) {
    cluster.At({Role::kWorker, rank}).Send(kA, 10'000);
  }
  cluster.Run();
  EXPECT_THAT(cluster.At(kA).heard, SizeIs(kSenders));
  EXPECT_EQ(cluster.loop().Now(), Nanos(5000 + kSenders * 10'000));
}

TEST(ShapedWire, TheTwoDirectionsOfAPortAreIndependent) {
  ShapedCluster cluster(kShape);
  cluster.At(kA).Send(kB, 10'000);
  cluster.At(kB).Send(kA, 10'000);
  cluster.Run();
  EXPECT_THAT(cluster.At(kA).ArrivalTimes(), ElementsAre(Nanos(15'000)));
  EXPECT_THAT(cluster.At(kB).ArrivalTimes(), ElementsAre(Nanos(15'000)));
}

// The later departure is the first to be heard of: its sender's clock is ahead by 3 us of the time
// that the other's message is on its way, yet the port serves them in order of departure.
TEST(ShapedWire, TheReceiversPortServesInOrderOfDeparture) {
  ShapedCluster cluster(kShape);
  cluster.At(kA);
  ShapeOptions ahead = kShape;
  ahead.clock_offset = Nanos(3000);
  cluster.At(kB, ahead).Send(kA, 1000);  // departs at 3,000 of the cluster's clock
  cluster.loop().RunAt(Nanos(1000), [&] { cluster.At(kC).Send(kA, 1000); });
  cluster.Run();
  ASSERT_THAT(cluster.At(kA).heard, SizeIs(2));
  EXPECT_EQ(cluster.At(kA).heard[0].from, kC);
  EXPECT_THAT(cluster.At(kA).ArrivalTimes(), ElementsAre(Nanos(7000), Nanos(9000)));
}

TEST(ShapedWire, OffsetsLeadToTheClustersClock) {
  ShapedCluster cluster(kShape);
  ShapeOptions offset = kShape;
  offset.clock_offset = seconds(100);
  cluster.At(kA, offset).Send(kB, 1000);
  cluster.At(kB, offset);
  cluster.Run();
  EXPECT_EQ(cluster.At(kB).heard.at(0).header.departs, seconds(100));
  EXPECT_THAT(cluster.At(kB).ArrivalTimes(), ElementsAre(Nanos(6000)));
}

TEST(ShapedWire, CreditIsNotTheModelledPrograms) {
  ShapedCluster cluster(kShape);
  cluster.At(kB);
  cluster.At(kA).Send(kB, 1'000'000, 1);
  cluster.At(kA).Send(kB, 0, 2, MessageKind::kCredit);
  cluster.Run();
  ASSERT_THAT(cluster.At(kB).heard, SizeIs(2));
  EXPECT_EQ(cluster.At(kB).heard[0].header.kind, MessageKind::kCredit);
  EXPECT_EQ(cluster.At(kB).heard[0].when, Nanos(0));
  EXPECT_EQ(cluster.At(kB).heard[1].when, Nanos(1'005'000));
}

TEST(ShapedWire, JitterNeverTurnsTheOrderOfAPeerAround) {
  ShapeOptions jittery = kShape;
  jittery.port.jitter = milliseconds(1);
  jittery.seed = 5;
  ShapedCluster cluster(jittery);
  cluster.At(kB);
  for (std::uint32_t i = 0; i < 200; ++i) {
    cluster.At(kA).Send(kB, 100, i);
  }
  cluster.Run();
  ASSERT_THAT(cluster.At(kB).heard, SizeIs(200));
  for (std::uint32_t i = 0; i < 200; ++i) {
    EXPECT_EQ(cluster.At(kB).heard[i].header.envelope.part, i);
  }
  // Waiting for the message in front is modelled, not the loop's lateness.
  EXPECT_EQ(cluster.At(kB).shaped().Report().loop_late_p90, Nanos(0));
}

TEST(ShapedWire, TheSeedReplaysJitterAndLoss) {
  const auto arrivals = [](std::uint64_t seed) {
    ShapeOptions options = kShape;
    options.port.jitter = milliseconds(1);
    options.port.loss_probability = 0.1;
    options.port.retransmit_after = milliseconds(20);
    options.seed = seed;
    ShapedCluster cluster(options);
    cluster.At(kB);
    for (int i = 0; i < 100; ++i) {
      cluster.At(kA).Send(kB, 1000);
    }
    cluster.Run();
    return cluster.At(kB).ArrivalTimes();
  };
  EXPECT_EQ(arrivals(1), arrivals(1));
  EXPECT_NE(arrivals(1), arrivals(2));
}

// A loss of one message in four costs 20 ms: in the mean of 4,000 spaced messages 1/3 x 20 ms.
TEST(ShapedWire, LossCostsItsRetransmission) {
  ShapeOptions lossy = kShape;
  lossy.port.loss_probability = 0.25;
  lossy.port.retransmit_after = milliseconds(20);
  lossy.seed = 11;
  ShapedCluster cluster(lossy);
  cluster.At(kB);
  constexpr int kMessages = 4000;
  for (int i = 0; i < kMessages; ++i) {
    cluster.loop().RunAt(i * seconds(1), [&] { cluster.At(kA).Send(kB, 1000); });
  }
  cluster.Run();
  ASSERT_THAT(cluster.At(kB).heard, SizeIs(kMessages));
  double late = 0;
  for (const Listener::Heard& heard : cluster.At(kB).heard) {
    late += static_cast<double>((heard.when - heard.header.departs - Nanos(6000)).count());
  }
  EXPECT_NEAR(late / kMessages / 1e6, 20.0 / 3, 0.5);
}

TEST(ShapedWire, AnInjectedLinkSlowsOnlyItsDirection) {
  ShapedCluster cluster(kShape);
  cluster.At(kA).shaped().ShapeLink(kB, {.alpha = milliseconds(5), .bandwidth = {1e8}});
  cluster.At(kA).Send(kB, 1000);
  cluster.At(kA).Send(kC, 1000);
  cluster.At(kB).Send(kA, 1000);
  cluster.At(kC);
  cluster.Run();
  EXPECT_THAT(cluster.At(kB).ArrivalTimes(), ElementsAre(milliseconds(5) + Nanos(15'000)));
  EXPECT_THAT(cluster.At(kC).ArrivalTimes(), ElementsAre(Nanos(7000)));
  EXPECT_THAT(cluster.At(kA).ArrivalTimes(), ElementsAre(Nanos(6000)));
}

// The receiver shapes the way from a peer that does not: messages arrive as if the peer had.
TEST(ShapedWire, ALinkShapedByItsReceiverDeliversAsOneShapedByItsSender) {
  const auto arrivals = [](bool by_receiver, const fabric::LinkSpec& spec, const Endpoint& from) {
    ShapedCluster cluster(kShape);
    Listener& a = cluster.At(kA);
    Listener& b = cluster.At(kB);
    if (by_receiver) {
      b.shaped().ShapeLinkFrom(kA, spec);
    } else {
      a.shaped().ShapeLink(kB, spec);
    }
    for (int i = 0; i < 3; ++i) {
      cluster.At(from).Send(kB, 1000);
    }
    cluster.Run();
    return b.ArrivalTimes();
  };
  for (const fabric::LinkSpec& spec :
       {fabric::LinkSpec{.alpha = milliseconds(5), .bandwidth = {1e8}},
        fabric::LinkSpec{.alpha = milliseconds(5), .bandwidth = {1e12}}}) {
    EXPECT_EQ(arrivals(true, spec, kA), arrivals(false, spec, kA));
    EXPECT_GT(arrivals(true, spec, kA).front(), milliseconds(5));
    EXPECT_EQ(arrivals(true, spec, kC).front(), Nanos(6000))
        << "others are not slowed";
  }
}

TEST(ShapedWire, AReceiversLinkSlowsAnUnlimitedNetworkUntilItIsReset) {
  ShapedCluster cluster({.port = {.bandwidth = {std::numeric_limits<double>::infinity()}}});
  Listener& b = cluster.At(kB);
  b.shaped().ShapeLinkFrom(kA, {.alpha = milliseconds(5), .bandwidth = {1e12}});
  cluster.At(kA).Send(kB, 1000, 0);
  cluster.loop().RunUntil(milliseconds(1));
  b.shaped().ResetLinks();
  cluster.At(kA).Send(kB, 1000, 1);
  cluster.Run();
  EXPECT_THAT(b.ArrivalTimes(),
              ElementsAre(milliseconds(5) + Nanos(1), milliseconds(5) + Nanos(1)));
  EXPECT_EQ(b.heard[1].header.envelope.part, 1);
}

// What was sent before the reset keeps its shape, and what is sent after does not overtake it.
TEST(ShapedWire, ResetHoldsFromNowOn) {
  ShapedCluster cluster(kShape);
  cluster.At(kB);
  Listener& a = cluster.At(kA);
  a.shaped().ShapeLink(kB, {.bandwidth = {1e8}});
  a.Send(kB, 1000, 0);
  a.Send(kB, 1000, 1);
  a.shaped().ResetLinks();
  a.Send(kB, 1000, 2);
  cluster.Run();
  ASSERT_THAT(cluster.At(kB).heard, SizeIs(3));
  EXPECT_THAT(cluster.At(kB).ArrivalTimes(),
              ElementsAre(Nanos(15'000), Nanos(25'000), Nanos(26'000)));
  EXPECT_EQ(cluster.At(kB).heard[2].header.envelope.part, 2);
  a.Send(kB, 1000, 3);
  const Nanos now = cluster.loop().Now();
  cluster.Run();
  EXPECT_EQ(cluster.At(kB).heard.back().when, now + Nanos(6000));
}

// A native network: stamps of a clock that is 1 ms ahead, or behind, hold nothing up.
TEST(ShapedWire, AnUnlimitedNetworkPassesMessagesAtOnce) {
  constexpr Nanos kOff = milliseconds(1);
  ShapeOptions unlimited{.port = {.bandwidth = {std::numeric_limits<double>::infinity()}}};
  ShapedCluster cluster(unlimited);
  cluster.loop().RunUntil(seconds(1));
  cluster.At(kA);
  ShapeOptions ahead = unlimited;
  ahead.clock_offset = kOff;
  cluster.At(kB, ahead).Send(kA, 1 << 20);
  ShapeOptions behind = unlimited;
  behind.clock_offset = -kOff;
  cluster.At(kC, behind).Send(kA, 1 << 20);
  cluster.Run();
  EXPECT_THAT(cluster.At(kA).ArrivalTimes(), ElementsAre(seconds(1), seconds(1)));
  EXPECT_EQ(cluster.At(kA).shaped().Report().messages, 0);
}

TEST(ShapedWire, AnInjectedLinkSlowsAnUnlimitedNetworkInOrder) {
  ShapeOptions unlimited{.port = {.bandwidth = {std::numeric_limits<double>::infinity()}}};
  ShapedCluster cluster(unlimited);
  cluster.At(kB);
  Listener& a = cluster.At(kA);
  a.shaped().ShapeLink(kB, {.alpha = milliseconds(5), .bandwidth = unlimited.port.bandwidth});
  a.Send(kB, 1000, 0);
  a.shaped().ResetLinks();
  a.Send(kB, 1000, 1);
  cluster.Run();
  EXPECT_THAT(cluster.At(kB).ArrivalTimes(), ElementsAre(milliseconds(5), milliseconds(5)));
  EXPECT_EQ(cluster.At(kB).heard[1].header.envelope.part, 1);
}

// Timers that fire 60 us late delay what they deliver, but do not add up along a chain of replies.
TEST(ShapedWire, LateTimersDoNotAddUpAlongAChain) {
  constexpr int kHops = 40;
  constexpr Nanos kLate = microseconds(60);
  ShapeOptions slow{.port = {.alpha = milliseconds(1), .bandwidth = {1e9}}};
  ShapedCluster cluster(slow, kLate);
  int hops = 0;
  for (const Endpoint self : {kA, kB}) {
    cluster.At(self).on_arrival = [&, self](Endpoint from, const MessageHeader&) {
      if (++hops < kHops) {
        cluster.At(self).Send(from, 1'000'000);
      }
    };
  }
  cluster.At(kA).Send(kB, 1'000'000);
  cluster.Run();
  EXPECT_EQ(hops, kHops);
  const Nanos modelled = kHops * milliseconds(2);
  EXPECT_GE(cluster.loop().Now(), modelled);
  EXPECT_LE(cluster.loop().Now(), modelled + 3 * kLate);
  const ShapeReport report = cluster.At(kB).shaped().Report();
  EXPECT_EQ(report.could_not_keep_up, 0);
  EXPECT_EQ(report.loop_late_p90, kLate);
}

TEST(ShapedWire, InstantsAtTheEndOfTimeNeverCome) {
  ShapeOptions offset = kShape;
  offset.clock_offset = seconds(-5);
  ShapedCluster cluster(kShape);
  cluster.loop().RunUntil(seconds(10));
  cluster.At(kB, offset);
  cluster.At(kA, offset).shaped().ShapeLink(kB, {.bandwidth = {1e-9}});
  cluster.At(kA).Send(kB, std::numeric_limits<Bytes>::max());
  cluster.loop().RunUntil(seconds(1'000'000));
  EXPECT_THAT(cluster.At(kB).heard, IsEmpty());
  EXPECT_THAT(cluster.At(kA).sent, IsEmpty());
}

}  // namespace
}  // namespace ranklab::transport
