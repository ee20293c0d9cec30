// A server is killed in the middle of training, at any instant, and the one that has its replica
// goes on: nothing that was acknowledged is lost, nothing counts twice, and a synchronous run in
// rank order ends with the bits of a serial replay.
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "tests/ps/hostile_network.h"
#include "tests/ps/quadratic_training.h"

namespace ranklab::ps {
namespace {

constexpr std::int64_t kNoBound = StalenessBound::kUnbounded;

// Everybody is told of the loss at a time of their own.
void KillAndTell(sim::VirtualLoop& loop, HostileNetwork& network, PsCluster& cluster, Rank lost,
                 int workers, std::uint64_t latest_ns, Random& random) {
  const auto later = [&](Task task) {
    loop.RunAt(loop.Now() + std::chrono::nanoseconds(random.Below(5000)), std::move(task));
  };
  loop.RunAt(std::chrono::nanoseconds(random.Below(latest_ns)), [&, lost, workers, later] {
    network.Kill(lost);
    later([&, lost] { cluster.TellHeir(lost); });
    later([&, lost] { cluster.TellPredecessor(lost); });
    for (Rank worker = 0; worker < workers; ++worker) {
      later([&, worker, lost] { cluster.TellWorker(worker, lost); });
    }
  });
}

// How many of the shard's updates the workers saw on the lost server, and whether it was killed
// before the end.
struct Outcome {
  Values parameters;
  bool in_time = false;
};

Outcome TrainThroughALoss(std::uint64_t seed) {
  Random random(seed);
  sim::VirtualLoop loop;
  HostileNetwork network(
      loop, random.Split(1),
      {.straggling_of = 1U << 31, .repeats_of = random.Below(2) == 0 ? 4U : 1U << 31});
  compute::CpuDevice device({});
  const int servers = 2 + static_cast<int>(random.Below(3));
  PsCluster cluster(loop, network,
                    {.workers = kWorkers,
                     .servers = servers,
                     .elements = kElements,
                     .order = Order::kRank,
                     .block_elements = 5,
                     .message = 4 * (1 + static_cast<Bytes>(random.Below(8))),
                     .initial = Values(kElements, 0.5F),
                     .replicated = true},
                    MomentumFactory(device));
  const auto points = MakePoints(7);
  std::vector<std::unique_ptr<QuadraticWorker>> workers;
  for (Rank rank = 0; rank < kWorkers; ++rank) {
    workers.push_back(std::make_unique<QuadraticWorker>(cluster.client(rank),
                                                        points[static_cast<std::size_t>(rank)]));
    workers.back()->Pull(1);
  }
  const auto lost = static_cast<Rank>(random.Below(static_cast<std::uint64_t>(servers)));
  KillAndTell(loop, network, cluster, lost, kWorkers, 150'000, random);
  EXPECT_TRUE(loop.Run(10'000'000));
  for (Rank rank = 0; rank < kWorkers; ++rank) {
    const QuadraticWorker& worker = *workers[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(worker.finished())
        << "worker " << rank << " waits for " << cluster.client(rank).WaitingFor();
    EXPECT_EQ(worker.parameters(), cluster.Parameters()) << "all end with the same";
  }
  return {cluster.Parameters(), cluster.shard(lost).version() < kSteps};
}

std::pair<std::uint64_t, std::uint64_t> Seeds(std::uint64_t usual) {
  if (const char* seed = std::getenv("RANKLAB_SEED")) {
    const std::uint64_t only = std::strtoull(seed, nullptr, 10);
    return {only, only};
  }
  const char* seeds = std::getenv("RANKLAB_SEEDS");  // more, by hand
  return {1, seeds == nullptr ? usual : std::strtoull(seeds, nullptr, 10)};
}

TEST(Survival, ALostServersReplicaGoesOnWithTheBitsOfASerialReplay) {
  const Values serial = TrainSerially(/*fold_by_worker=*/true);
  const auto [first, last] = Seeds(200);
  int in_time = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const Outcome outcome = TrainThroughALoss(seed);
    in_time += outcome.in_time ? 1 : 0;
    EXPECT_TRUE(SameBits(outcome.parameters, serial));
    if (HasFailure()) {
      FAIL() << "replay with: RANKLAB_SEED=" << seed
             << " ps_cluster_test --gtest_filter=Survival.*";
    }
  }
  EXPECT_TRUE(first == last || in_time > 20) << in_time << " kills were in the middle of training";
}

// ---- asynchronous: every step of every worker is counted once
// ------------------------------------

// Its gradients are 8^rank everywhere, and the optimizer only adds: the digits of each parameter,
// in base 8, say how many steps of each worker are in it.
class CountedWorker {
 public:
  static constexpr Step kSteps = 6;

  CountedWorker(Client& client, std::int64_t elements, Rank rank)
      : client_(client),
        rank_(rank),
        gradients_(static_cast<std::size_t>(elements), static_cast<float>(1 << (3 * rank))),
        parameters_(gradients_.size()) {}

  void Pull(Step step) {
    client_.Pull(step, {0, Elements()}, parameters_.data(),
                 [this, step](const absl::StatusOr<Pulled>& pulled) {
                   ASSERT_TRUE(pulled.ok()) << pulled.status().ToString();
                   for (const float parameter : parameters_) {
                     ASSERT_EQ((static_cast<Step>(parameter) >> (3 * rank_)) & 7, step - 1)
                         << "worker " << rank_ << " reads its own steps, all of them and once";
                   }
                   if (step <= kSteps) {
                     return Push(step);
                   }
                   client_.Leave([this](const absl::Status& status) {
                     ASSERT_TRUE(status.ok()) << status.ToString();
                     finished_ = true;
                   });
                 });
  }
  bool finished() const { return finished_; }

 private:
  std::int64_t Elements() const { return static_cast<std::int64_t>(gradients_.size()); }
  void Push(Step step) {
    client_.Push(step, {0, Elements()}, gradients_.data(),
                 [this, step](const absl::Status& status) {
                   ASSERT_TRUE(status.ok()) << status.ToString();
                   client_.EndStep(step, {.weight = 1.0}, [](const absl::Status& ended) {
                     ASSERT_TRUE(ended.ok()) << ended.ToString();
                   });
                   Pull(step + 1);
                 });
  }

  Client& client_;
  Rank rank_;
  Values gradients_;
  Values parameters_;
  bool finished_ = false;
};

void CountThroughALoss(std::uint64_t seed) {
  constexpr std::int64_t kBounds[] = {0, 1, 2, kNoBound};
  Random random(seed);
  sim::VirtualLoop loop;
  HostileNetwork network(loop, random.Split(1), {});
  const int workers = 1 + static_cast<int>(random.Below(5));
  const int servers = 2 + static_cast<int>(random.Below(3));
  const std::int64_t elements = servers + static_cast<std::int64_t>(random.Below(20));
  PsCluster cluster(loop, network,
                    {.workers = workers,
                     .servers = servers,
                     .elements = elements,
                     .bound = {kBounds[random.Below(std::size(kBounds))]},
                     .block_elements = 1 + static_cast<std::int64_t>(random.Below(8)),
                     .message = 4 * (1 + static_cast<Bytes>(random.Below(8))),
                     .replicated = true},
                    CountingFactory());
  std::vector<std::unique_ptr<CountedWorker>> counted;
  for (Rank rank = 0; rank < workers; ++rank) {
    counted.push_back(std::make_unique<CountedWorker>(cluster.client(rank), elements, rank));
    counted.back()->Pull(1);
  }
  const auto lost = static_cast<Rank>(random.Below(static_cast<std::uint64_t>(servers)));
  KillAndTell(loop, network, cluster, lost, workers, 150'000, random);
  ASSERT_TRUE(loop.Run(1'000'000)) << "it does not end";
  float all = 0;
  for (Rank rank = 0; rank < workers; ++rank) {
    ASSERT_TRUE(counted[static_cast<std::size_t>(rank)]->finished())
        << "worker " << rank << " waits for " << cluster.client(rank).WaitingFor();
    all += static_cast<float>(CountedWorker::kSteps << (3 * rank));
  }
  ASSERT_EQ(cluster.Parameters(), Values(static_cast<std::size_t>(elements), all));
}

TEST(Survival, EveryStepIsCountedOnceThroughALossOnAHostileNetwork) {
  const auto [first, last] = Seeds(300);
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    CountThroughALoss(seed);
    if (HasFailure()) {
      FAIL() << "replay with: RANKLAB_SEED=" << seed
             << " ps_cluster_test --gtest_filter=Survival.*";
    }
  }
}

// The old server lives, but nobody believes it: it must not answer with what its heir does not
// have.
TEST(Survival, AServerWhoseReplicaWasPromotedAnswersNobodyAnyMore) {
  sim::VirtualLoop loop;
  MessengerNetwork network(loop);
  PsCluster cluster(loop, network, {.workers = 1, .servers = 2, .elements = 4, .replicated = true},
                    CountingFactory());
  Values ones(4, 1.0F);
  Values read(4);
  cluster.TellHeir(0);
  cluster.client(0).Push(1, {0, 4}, ones.data(), [](const absl::Status&) {});
  cluster.client(0).EndStep(1, {.weight = 1.0}, [](const absl::Status&) {});
  absl::Status pulled;
  cluster.client(0).Pull(2, {0, 2}, read.data(),
                         [&](const absl::StatusOr<Pulled>& result) { pulled = result.status(); });
  loop.Run();
  EXPECT_TRUE(absl::IsAborted(pulled)) << pulled.ToString();
  EXPECT_EQ(cluster.standby_of(0).version(), 0);
}

// Both servers take over for the worker that was lost: its unfinished step is in no parameter.
TEST(Survival, ALostWorkerIsTakenOutOfReplicasToo) {
  sim::VirtualLoop loop;
  MessengerNetwork network(loop);
  PsCluster cluster(loop, network, {.workers = 2, .servers = 2, .elements = 4, .replicated = true},
                    CountingFactory());
  Values ones(4, 1.0F);
  Values tens(4, 10.0F);
  cluster.client(1).Push(1, {0, 3}, tens.data(), [](const absl::Status&) {});
  cluster.client(0).Push(1, {0, 4}, ones.data(), [](const absl::Status&) {});
  cluster.client(0).EndStep(1, {.weight = 1.0}, [](const absl::Status&) {});
  loop.Run();
  cluster.Remove(1);
  loop.Run();
  EXPECT_EQ(cluster.Parameters(), ones);
  cluster.TellHeir(1);
  EXPECT_EQ(cluster.Parameters(), ones) << "the replica is the same";
}

}  // namespace
}  // namespace ranklab::ps
