// Synchronous training through the parameter servers is the training of one process: oracle, the
// same arithmetic written out serially.
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include <gtest/gtest.h>

#include "compute/operations.h"
#include "tests/ps/hostile_network.h"

namespace ranklab::ps {
namespace {

constexpr int kWorkers = 4;
constexpr int kSteps = 12;
constexpr std::int64_t kElements = 37;
constexpr std::int64_t kRate = 32;  // learning rate 1 / 32
using Values = std::vector<float>;

// Worker r has r + 1 points; the loss is the sum over all points of |w - point|^2 / 2.
std::vector<std::vector<Values>> MakePoints(std::uint64_t seed) {
  Random random(seed);
  std::vector<std::vector<Values>> points(kWorkers);
  for (std::size_t worker = 0; worker < kWorkers; ++worker) {
    points[worker].resize(worker + 1, Values(kElements));
    for (Values& point : points[worker]) {
      for (float& x : point) {
        x = static_cast<float>(random.Normal());
      }
    }
  }
  return points;
}

Values SumOfGradients(const std::vector<Values>& points, const Values& parameters) {
  Values sum(kElements, 0.0F);
  for (const Values& point : points) {
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += parameters[i] - point[i];
    }
  }
  return sum;
}

class QuadraticWorker {
 public:
  QuadraticWorker(Client& client, std::vector<Values> points)
      : client_(client), points_(std::move(points)), parameters_(kElements) {}

  void Pull(Step step) {
    client_.Pull(step, {0, kElements}, parameters_.data(),
                 [this, step](const absl::StatusOr<Pulled>& pulled) {
                   ASSERT_TRUE(pulled.ok()) << pulled.status().ToString();
                   if (step <= kSteps) {
                     Push(step);
                   }
                 });
  }

  const Values& parameters() const { return parameters_; }

 private:
  void Push(Step step) {
    gradients_ = SumOfGradients(points_, parameters_);
    const auto expect_ok = [](const absl::Status& status) {
      ASSERT_TRUE(status.ok()) << status.ToString();
    };
    client_.Push(step, {20, kElements}, gradients_.data() + 20, expect_ok);
    client_.Push(
        step, {0, 20}, gradients_.data(), [this, step, expect_ok](const absl::Status& status) {
          expect_ok(status);
          client_.EndStep(step, {.weight = static_cast<double>(points_.size())}, expect_ok);
          Pull(step + 1);
        });
  }

  Client& client_;
  std::vector<Values> points_;
  Values parameters_;
  Values gradients_;
};

OptimizerFactory MomentumFactory(compute::Device& device) {
  return [&device] {
    return compute::MakeOptimizer(
        {.name = "momentum", .learning_rate = {.peak = 1.0 / kRate}, .momentum = 0.75}, device);
  };
}

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

// The left fold in rank order, then one optimizer over the whole model.
Values TrainSerially(bool fold_by_worker) {
  compute::CpuDevice device({});
  auto optimizer = MomentumFactory(device)();
  EXPECT_TRUE(optimizer.ok());
  auto memory =
      device.Allocate(2 * kElements * Bytes{sizeof(float)}, compute::MemoryKind::kWeights);
  EXPECT_TRUE(memory.ok());
  const auto view = [&](std::int64_t begin) {
    return compute::ViewOf(**memory, compute::DType::kFloat32, {kElements, 1, 1, 1}, begin);
  };
  auto* parameters = reinterpret_cast<float*>(view(0).data);
  auto* sum = reinterpret_cast<float*>(view(kElements).data);
  std::fill_n(parameters, kElements, 0.5F);
  const auto points = MakePoints(7);
  double weight = 0;
  std::vector<Values> all;
  for (const auto& of_worker : points) {
    weight += static_cast<double>(of_worker.size());
    all.insert(all.end(), of_worker.begin(), of_worker.end());
  }
  for (int step = 1; step <= kSteps; ++step) {
    const Values now(parameters, parameters + kElements);
    Values total = SumOfGradients(fold_by_worker ? points.front() : all, now);
    for (std::size_t worker = 1; fold_by_worker && worker < kWorkers; ++worker) {
      const Values gradients = SumOfGradients(points[worker], now);
      for (std::size_t i = 0; i < total.size(); ++i) {
        total[i] += gradients[i];
      }
    }
    std::copy(total.begin(), total.end(), sum);
    EXPECT_TRUE((*optimizer)->Apply(view(0), view(kElements), 1.0 / weight).ok());
  }
  return {parameters, parameters + kElements};
}

bool SameBits(const Values& a, const Values& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
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
