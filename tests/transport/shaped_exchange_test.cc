// Three derivations of one time: the closed form, the event replay over shaped wires, and for the
// account that a live run gives of itself, the mutations that must make it fail.
#include "tests/transport/shaped_exchange.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/cost.h"
#include "fabric/held_to_account.h"
#include "fabric/presets.h"
#include "transport/messenger.h"

namespace ranklab::transport {
namespace {

using std::chrono::microseconds;

constexpr Bytes kPart = 720'720;  // divisible by every number up to 16

ShapeOptions Shape(std::string_view preset, double time_scale) {
  return {.port = fabric::Dilate(fabric::FindPreset(preset)->port, time_scale)};
}

void ExpectWithinAMicrosecond(Nanos found, Nanos expected) {
  EXPECT_NEAR(static_cast<double>(found.count()), static_cast<double>(expected.count()), 1000);
}

Nanos ReplayRing(const ShapeOptions& options, int ranks, Bytes size) {
  ShapedCluster cluster(options);
  RingReplay ring{.cluster = cluster, .ranks = ranks, .size = size, .steps_sent = {}};
  ring.Begin();
  cluster.Run();
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(cluster.At(WorkerOf(rank)).heard.size(), static_cast<std::size_t>(ring.steps()));
  }
  return cluster.loop().Now();
}

class ShapedExchange : public ::testing::TestWithParam<int> {};  // of ranks or workers
INSTANTIATE_TEST_SUITE_P(Worlds, ShapedExchange, ::testing::Values(2, 3, 4, 5, 8, 16));

TEST_P(ShapedExchange, ARingTakesItsClosedForm) {
  for (const std::string_view preset : {"pcie4_x16", "nvlink4", "ib_ndr", "ethernet_10g"}) {
    for (const Bytes size : {Bytes{0}, kPart, 20 * kPart}) {
      SCOPED_TRACE(std::string(preset) + ", " + std::to_string(size) + " bytes");
      const ShapeOptions options = Shape(preset, 1);
      ExpectWithinAMicrosecond(ReplayRing(options, GetParam(), size),
                               fabric::RingAllReduceTime(options.port, GetParam(), size));
    }
  }
}

TEST_P(ShapedExchange, APushAndAPullTakeTheirClosedForm) {
  for (const int servers : {1, 2, 3, 4, 8}) {
    SCOPED_TRACE(std::to_string(servers) + " servers");
    const ShapeOptions options = Shape("ib_hdr", 1);
    const Bytes size = 24 * kPart;
    const Nanos half = fabric::ParameterServerHalfTime(options.port, GetParam(), servers, size);
    ShapedCluster cluster(options);
    BeginPush(cluster, GetParam(), servers, size);
    cluster.Run();
    ExpectWithinAMicrosecond(cluster.loop().Now(), half);
    const Nanos pushed = cluster.loop().Now();
    BeginPull(cluster, GetParam(), servers, size);
    cluster.Run();
    ExpectWithinAMicrosecond(cluster.loop().Now() - pushed, half);
  }
}

// Push and pull use opposite directions: at once they take no longer than one of them.
TEST_P(ShapedExchange, PushAndPullAtOnceTakeOneHalf) {
  const ShapeOptions options = Shape("ib_hdr", 1);
  ShapedCluster cluster(options);
  BeginPush(cluster, GetParam(), 2, 2 * kPart);
  BeginPull(cluster, GetParam(), 2, 2 * kPart);
  cluster.Run();
  ExpectWithinAMicrosecond(cluster.loop().Now(),
                           fabric::ParameterServerHalfTime(options.port, GetParam(), 2, 2 * kPart));
}

TEST_P(ShapedExchange, DilationMakesItLongerByTheScale) {
  const Nanos plain = ReplayRing(Shape("nvlink4", 1), GetParam(), kPart);
  const Nanos dilated = ReplayRing(Shape("nvlink4", 1000), GetParam(), kPart);
  const int messages = 2 * (GetParam() - 1);
  EXPECT_NEAR(static_cast<double>(dilated.count()), 1000.0 * static_cast<double>(plain.count()),
              1000.0 * messages);  // half a nanosecond of rounding a message, dilated
}

// The same ring through the messenger: posted receives, credit for each large chunk.
TEST_P(ShapedExchange, ARingOfPostedMessagesTakesItsClosedForm) {
  const int ranks = GetParam();
  const ShapeOptions options = Shape("ib_ndr", 100);
  const Bytes chunk = 20 * kPart / ranks;
  sim::VirtualLoop loop;
  LocalNetwork network(loop);
  std::vector<std::unique_ptr<ShapedWire>> wires;
  std::vector<std::unique_ptr<Messenger>> messengers;
  for (int rank = 0; rank < ranks; ++rank) {
    wires.push_back(std::make_unique<ShapedWire>(loop, network.Connect(WorkerOf(rank)), options));
    messengers.push_back(std::make_unique<Messenger>(loop, *wires.back(), MessengerOptions{}));
  }
  int received = 0;
  const int steps = 2 * (ranks - 1);
  for (int rank = 0; rank < ranks; ++rank) {
    Messenger& messenger = *messengers[rank];
    const Endpoint right = WorkerOf((rank + 1) % ranks);
    const Endpoint left = WorkerOf((rank + ranks - 1) % ranks);
    const auto send = [&messenger, right, chunk](int step) {
      messenger.Send(right, {.part = static_cast<std::uint32_t>(step)},
                     {.data = nullptr, .size = chunk}, [](absl::Status) {});
    };
    for (int step = 0; step < steps; ++step) {
      messenger.Recv(left, {.part = static_cast<std::uint32_t>(step)},
                     {.data = nullptr, .size = chunk},
                     [&received, step, steps, send](absl::Status status) {
                       ASSERT_TRUE(status.ok()) << status;
                       ++received;
                       if (step + 1 < steps) {
                         send(step + 1);
                       }
                     });
    }
    send(0);
  }
  loop.Run();
  EXPECT_EQ(received, ranks * steps);
  ExpectWithinAMicrosecond(loop.Now(), fabric::RingAllReduceTime(options.port, ranks, 20 * kPart));
}

// The account of rank 1 of a ring of 4 after one exchange, as a run gives it.
class Account : public ::testing::Test {
 protected:
  static constexpr int kRanks = 4;
  static constexpr Bytes kSize = 4 << 20;

  fabric::NetworkVerdict Run(RingReplay& ring, const std::function<void()>& mutate = {}) {
    if (mutate) {
      mutate();
    }
    ring.Begin();
    cluster_.Run();
    const fabric::NetworkClaim claim{.port = options_.port, .body_received = ring.BytesPerRank()};
    return fabric::HoldToAccount(claim, FiguresOf(ring.At(1), WorkerOf(0)));
  }
  RingReplay Ring() {
    return {.cluster = cluster_, .ranks = kRanks, .size = kSize, .steps_sent = {}};
  }

  ShapeOptions options_ = Shape("pcie4_x16", 100);
  ShapedCluster cluster_{options_};
};

TEST_F(Account, HoldsForAShapedRing) {
  RingReplay ring = Ring();
  const fabric::NetworkVerdict verdict = Run(ring);
  EXPECT_TRUE(verdict.held()) << ::testing::PrintToString(verdict.findings);
}

TEST_F(Account, FailsWhenALinkIsHalved) {
  RingReplay ring = Ring();
  const fabric::NetworkVerdict verdict = Run(ring, [&] {
    cluster_.At(WorkerOf(0))
        .shaped()
        .ShapeLink(WorkerOf(1), {.bandwidth = {options_.port.bandwidth.bytes_per_second / 2}});
  });
  EXPECT_FALSE(verdict.bandwidth_held);
  EXPECT_TRUE(verdict.bytes_held);
}

TEST_F(Account, FailsWhenTheSendersPortIsHalved) {
  RingReplay ring = Ring();
  ShapeOptions half = options_;
  half.port.bandwidth.bytes_per_second /= 2;
  cluster_.At(WorkerOf(0), half);
  EXPECT_FALSE(Run(ring).bandwidth_held);
}

TEST_F(Account, FailsWhenShapingIsOff) {
  RingReplay ring = Ring();
  ring.shaped = false;
  const fabric::NetworkVerdict verdict = Run(ring);
  EXPECT_FALSE(verdict.held());
  EXPECT_TRUE(verdict.bytes_held);
}

// The sender's wire is plain: its messages carry no stamps.
TEST_F(Account, FailsWhenOnlyTheSenderIsNotShaped) {
  cluster_.loop().RunUntil(std::chrono::seconds(1));  // a clock that no longer stands at its epoch
  RingReplay ring = Ring();
  cluster_.Plain(WorkerOf(0));
  EXPECT_FALSE(Run(ring).bandwidth_held);
}

TEST_F(Account, FailsWhenOneTransferIsDropped) {
  RingReplay ring = Ring();
  ring.dropped_rank = 0;
  const fabric::NetworkVerdict verdict = Run(ring);
  EXPECT_FALSE(verdict.bytes_held);
  EXPECT_TRUE(verdict.bandwidth_held);
}

TEST_F(Account, FailsWhenALinkHasLatencyOfItsOwn) {
  cluster_.At(WorkerOf(0))
      .shaped()
      .ShapeLink(WorkerOf(1), {.alpha = microseconds(500), .bandwidth = options_.port.bandwidth});
  cluster_.At(WorkerOf(1));
  for (int i = 0; i < 5; ++i) {
    cluster_.At(WorkerOf(0)).Send(WorkerOf(1), 100);
    cluster_.Run();
  }
  const fabric::NetworkVerdict verdict =
      fabric::HoldToAccount({.port = options_.port, .body_received = 500},
                            FiguresOf(cluster_.At(WorkerOf(1)), WorkerOf(0)));
  EXPECT_FALSE(verdict.latency_held);
  EXPECT_TRUE(verdict.bytes_held);
}

}  // namespace
}  // namespace ranklab::transport
