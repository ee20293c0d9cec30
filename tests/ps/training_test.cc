// Synchronous training through the parameter servers is the training of one process: oracle, the
// same arithmetic written out serially.
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include <gtest/gtest.h>

#include "compute/operations.h"
#include "tests/ps/hostile_network.h"
#include "tests/ps/quadratic_training.h"

namespace ranklab::ps {
namespace {

Values TrainOnServers(Order order, int servers, std::uint64_t seed) {
  sim::VirtualLoop loop;
  // No repeats and no delays beyond each other: the pushes of a step come before its end.
  HostileNetwork network(loop, Random(seed), {.straggling_of = 1U << 31, .repeats_of = 1U << 31});
  compute::CpuDevice device({});
  PsCluster cluster(loop, network,
                    {.workers = kWorkers,
                     .servers = servers,
                     .elements = kElements,
                     .order = order,
                     .block_elements = 5,
                     .message = 16,
                     .initial = Values(kElements, 0.5F)},
                    MomentumFactory(device));
  const auto points = MakePoints(7);
  std::vector<std::unique_ptr<QuadraticWorker>> workers;
  for (Rank rank = 0; rank < kWorkers; ++rank) {
    workers.push_back(std::make_unique<QuadraticWorker>(cluster.client(rank),
                                                        points[static_cast<std::size_t>(rank)]));
    workers.back()->Pull(1);
  }
  EXPECT_TRUE(loop.Run(10'000'000));
  for (const auto& worker : workers) {
    EXPECT_EQ(worker->parameters(), cluster.Parameters()) << "all end with the same";
  }
  return cluster.Parameters();
}

TEST(SynchronousTraining, RankOrderIsBitEqualToASerialReplay) {
  const Values serial = TrainSerially(/*fold_by_worker=*/true);
  for (const int servers : {1, 2, 3}) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      EXPECT_TRUE(SameBits(TrainOnServers(Order::kRank, servers, seed), serial))
          << servers << " servers, seed " << seed;
    }
  }
}

// A step's sum has N terms of at most a few units: |error| <= steps x N x epsilon x sum |x|, and
// the contraction of the quadratic keeps earlier errors from growing.
void ExpectWithinRounding(const Values& a, const Values& b) {
  constexpr float kLargestSum = 40.0F;  // of ten points' gradients
  const float bound = kSteps * 10 * std::numeric_limits<float>::epsilon() * kLargestSum / kRate;
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_LE(std::abs(a[i] - b[i]), bound) << "element " << i;
  }
}

TEST(SynchronousTraining, ArrivalOrderIsEqualWithinRounding) {
  const Values serial = TrainSerially(/*fold_by_worker=*/true);
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    ExpectWithinRounding(TrainOnServers(Order::kArrival, 2, seed), serial);
  }
}

TEST(SynchronousTraining, ManyWorkersAreOneProcessWithAllSamples) {
  ExpectWithinRounding(TrainOnServers(Order::kRank, 2, 1), TrainSerially(/*fold_by_worker=*/false));
}

TEST(SynchronousTraining, MoreServersThanElements) {
  sim::VirtualLoop loop;
  MessengerNetwork network(loop);
  PsCluster cluster(loop, network, {.workers = 2, .servers = 5, .elements = 3}, CountingFactory());
  const Values ones(3, 1.0F);
  int ended = 0;
  for (Rank rank = 0; rank < 2; ++rank) {
    cluster.client(rank).Push(1, {0, 3}, ones.data(), [](const absl::Status&) {});
    cluster.client(rank).EndStep(1, {.weight = 1.0}, [&](const absl::Status& status) {
      EXPECT_TRUE(status.ok()) << status.ToString();
      ++ended;
    });
  }
  Values read(3);
  Pulled pulled;
  cluster.client(0).Pull(2, {0, 3}, read.data(),
                         [&](const absl::StatusOr<Pulled>& result) { pulled = *result; });
  loop.Run();
  EXPECT_EQ(ended, 2);
  EXPECT_EQ(read, Values(3, 2.0F));
  EXPECT_EQ(pulled.clock, 1);
  for (const ServerReport& report : cluster.Reports()) {
    EXPECT_EQ(report.updates, 1) << "also of those that hold nothing";
  }
}

}  // namespace
}  // namespace ranklab::ps
