// How shaped wires end: abort, destruction, lost peers, refusals.
#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/transport/shaped_cluster.h"
#include "transport/shaped_wire.h"

namespace ranklab::transport {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Endpoint kA{Role::kWorker, 0};
constexpr Endpoint kB{Role::kWorker, 1};

// 1 byte a nanosecond, 5 us.
constexpr ShapeOptions kShape{.port = {.alpha = Nanos(5000), .bandwidth = {1e9}}};

TEST(EndOfAShapedWire, EndsWhatIsHeldAndDeliversNothingMore) {
  ShapedCluster cluster(kShape);
  cluster.At(kB);
  Listener& a = cluster.At(kA);
  for (int i = 0; i < 3; ++i) {
    a.Send(kB, 10'000);
  }
  cluster.loop().RunUntil(Nanos(12'000));  // the first has left, the second is leaving
  ASSERT_THAT(a.sent, SizeIs(1));
  a.wire().Abort(absl::AbortedError("the generation changed"));
  cluster.At(kB).wire().Abort(absl::AbortedError("the generation changed"));
  a.Send(kB, 1);
  EXPECT_THAT(a.sent, SizeIs(1));  // not inline
  cluster.Run();
  ASSERT_THAT(a.sent, SizeIs(4));
  for (std::size_t i = 1; i < a.sent.size(); ++i) {
    EXPECT_EQ(a.sent[i].second.code(), absl::StatusCode::kAborted);
  }
  EXPECT_THAT(cluster.At(kB).heard, IsEmpty());
  EXPECT_EQ(cluster.loop().Now(), Nanos(12'000));  // no timer is left behind
}

// At every instant of a busy exchange: each send ends exactly once, nothing arrives afterwards.
TEST(EndOfAShapedWire, MayComeAtAnyMoment) {
  for (int events = 0; events < 120; ++events) {
    SCOPED_TRACE(events);
    ShapedCluster cluster(kShape);
    Listener& a = cluster.At(kA);
    Listener& b = cluster.At(kB);
    for (int i = 0; i < 8; ++i) {
      a.Send(kB, 1000);
      b.Send(kA, 700);
    }
    for (int i = 0; i < events && cluster.loop().RunOne(); ++i) {
    }
    a.wire().Abort(absl::AbortedError("stop"));
    const std::size_t heard = a.heard.size();
    cluster.Run();
    a.DestroyWire();
    EXPECT_THAT(a.sent, SizeIs(8));
    EXPECT_THAT(a.heard, SizeIs(heard));
    EXPECT_THAT(b.sent, SizeIs(8));
  }
}

// Against the contract (no Abort before), yet nothing is touched that is gone.
TEST(EndOfAShapedWire, WithoutAbortStillEndsEachSendOnce) {
  for (int events = 0; events < 120; ++events) {
    SCOPED_TRACE(events);
    ShapedCluster cluster(kShape);
    Listener& a = cluster.At(kA);
    cluster.At(kB);
    for (int i = 0; i < 8; ++i) {
      a.Send(kB, 1000);
      cluster.At(kB).Send(kA, 700);
    }
    for (int i = 0; i < events && cluster.loop().RunOne(); ++i) {
    }
    a.DestroyWire();
    cluster.Run();
    EXPECT_THAT(a.sent, SizeIs(8));
  }
}

TEST(EndOfAShapedWire, MayComeFromADelivery) {
  ShapedCluster cluster(kShape);
  Listener& b = cluster.At(kB);
  b.on_arrival = [&](Endpoint, const MessageHeader&) {
    b.wire().Abort(absl::AbortedError("enough"));
  };
  cluster.At(kA).Send(kB, 0);
  cluster.At(kA).Send(kB, 0);
  cluster.Run();
  EXPECT_THAT(b.heard, SizeIs(1));
}

TEST(EndOfAShapedWire, ALostPeerIsReportedAfterWhatItSent) {
  ShapedCluster cluster(kShape);
  Listener& b = cluster.At(kB);
  cluster.At(kA).Send(kB, 10'000);
  cluster.loop().RunUntil(Nanos(1));
  cluster.Kill(kA);
  cluster.Run();
  EXPECT_THAT(b.ArrivalTimes(), ElementsAre(Nanos(15'000)));
  ASSERT_THAT(b.lost, SizeIs(1));
  EXPECT_EQ(b.lost[0].first, kA);
  EXPECT_EQ(b.lost_at, Nanos(15'000));
}

// The verdict on a dead process must not wait for a slow modelled network.
TEST(EndOfAShapedWire, ALossWaitsASecondAtMost) {
  ShapeOptions slow{.port = {.alpha = seconds(1), .bandwidth = {1e3}}};
  ShapedCluster cluster(slow);
  Listener& b = cluster.At(kB);
  cluster.At(kA).Send(kB, 1'000'000);
  cluster.loop().RunUntil(Nanos(1));
  cluster.Kill(kA);
  cluster.loop().RunUntil(seconds(2));
  EXPECT_THAT(b.heard, IsEmpty());
  ASSERT_THAT(b.lost, SizeIs(1));
  EXPECT_EQ(b.lost_at, seconds(1) + Nanos(1));
  cluster.Run();
  EXPECT_THAT(b.heard, IsEmpty());
  EXPECT_THAT(b.lost, SizeIs(1));
}

TEST(EndOfAShapedWire, RefusesStampsThatNoShapedWireWrites) {
  ShapedCluster cluster(kShape);
  Listener& b = cluster.At(kB);
  Listener& stranger = cluster.Plain(kA);
  MessageHeader header;
  header.departs = Nanos(10);
  header.due = Nanos(9);
  stranger.wire().Send(kB, header, {}, [](absl::Status) {});
  cluster.Run();
  EXPECT_THAT(b.accepted, IsEmpty());
  ASSERT_THAT(b.lost, SizeIs(1));
  EXPECT_EQ(b.lost[0].second.code(), absl::StatusCode::kInvalidArgument);
}

TEST(EndOfAShapedWire, ARefusalOfTheSinkReachesTheWire) {
  ShapedCluster cluster(kShape);
  Listener& b = cluster.At(kB);
  b.refuses = absl::InvalidArgumentError("not ours");
  cluster.At(kA).Send(kB, 10);
  cluster.Run();
  ASSERT_THAT(b.lost, SizeIs(1));
  EXPECT_EQ(b.lost[0].second.code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ranklab::transport
