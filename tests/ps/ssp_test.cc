// The time that a staleness bound gives, in virtual time, against the recursion of Ho et al.:
//   f_i(k) = max(f_i(k-1), max_j f_j(k-1-s)) + x_i(k)
// with the real client, server, shard and messenger, and steps that are timers.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "core/random.h"
#include "tests/ps/ps_cluster.h"

namespace ranklab::ps {
namespace {

constexpr std::int64_t kNoBound = StalenessBound::kUnbounded;
using Seconds = std::vector<std::vector<int>>;  // [worker][step - 1]

// Pulls, computes for the time that its row says, pushes, and so on.
class TimedWorker {
 public:
  TimedWorker(sim::VirtualLoop& loop, Client& client, std::vector<int> seconds)
      : loop_(loop), client_(client), seconds_(std::move(seconds)), gradients_(kElements, 1.0F) {}

  static constexpr std::int64_t kElements = 5;

  void Begin() { PullFor(1); }
  std::int64_t finished_at() const { return finished_at_; }

 private:
  void PullFor(Step step) {
    client_.Pull(step, {0, kElements}, parameters_.data(),
                 [this, step](const absl::StatusOr<Pulled>& pulled) {
                   ASSERT_TRUE(pulled.ok()) << pulled.status().ToString();
                   const int seconds = seconds_.at(static_cast<std::size_t>(step - 1));
                   loop_.RunAt(loop_.Now() + std::chrono::seconds(seconds),
                               [this, step] { PushFor(step); });
                 });
  }
  void PushFor(Step step) {
    client_.Push(step, {0, kElements}, gradients_.data(),
                 [](const absl::Status& status) { ASSERT_TRUE(status.ok()) << status.ToString(); });
    client_.EndStep(step, {.weight = 1.0}, [this, step](const absl::Status& status) {
      ASSERT_TRUE(status.ok()) << status.ToString();
      if (step < static_cast<Step>(seconds_.size())) {
        PullFor(step + 1);
      } else {
        finished_at_ = std::chrono::duration_cast<std::chrono::seconds>(loop_.Now()).count();
      }
    });
  }

  sim::VirtualLoop& loop_;
  Client& client_;
  std::vector<int> seconds_;
  std::vector<float> gradients_;
  std::vector<float> parameters_ = std::vector<float>(kElements);
  std::int64_t finished_at_ = -1;
};

std::int64_t Play(const Seconds& seconds, std::int64_t bound) {
  sim::VirtualLoop loop;
  MessengerNetwork network(loop);
  PsCluster cluster(loop, network,
                    {.workers = static_cast<int>(seconds.size()),
                     .servers = 2,
                     .elements = TimedWorker::kElements,
                     .bound = {bound}},
                    CountingFactory());
  std::vector<std::unique_ptr<TimedWorker>> workers;
  for (std::size_t rank = 0; rank < seconds.size(); ++rank) {
    workers.push_back(std::make_unique<TimedWorker>(loop, cluster.client(static_cast<Rank>(rank)),
                                                    seconds[rank]));
    workers.back()->Begin();
  }
  EXPECT_TRUE(loop.Run(1'000'000));
  std::int64_t total = 0;
  for (const auto& worker : workers) {
    EXPECT_GE(worker->finished_at(), 0);
    total = std::max(total, worker->finished_at());
  }
  for (const ServerReport& report : cluster.Reports()) {
    for (const auto& histogram : report.staleness) {
      EXPECT_LE(histogram.rbegin()->first, bound);
    }
  }
  return total;
}

TEST(StaleSynchronous, RotatingStragglersTakeTheTimesOfTheReference) {
  const Seconds seconds{{1, 1, 5, 1, 1, 1, 1, 1},
                        {1, 5, 1, 1, 1, 1, 5, 1},
                        {1, 1, 1, 1, 5, 1, 1, 1},
                        {5, 1, 1, 1, 1, 1, 1, 5}};
  EXPECT_EQ(Play(seconds, 0), 32);
  EXPECT_EQ(Play(seconds, 1), 21);
  EXPECT_EQ(Play(seconds, 2), 16);
  EXPECT_EQ(Play(seconds, 3), 16);
  EXPECT_EQ(Play(seconds, 4), 16);
  EXPECT_EQ(Play(seconds, kNoBound), 16);
}

TEST(StaleSynchronous, OnePersistentStragglerTakesTheSameTimeWithAnyBound) {
  Seconds seconds(4, std::vector<int>(8, 1));
  seconds[0].assign(8, 2);
  EXPECT_EQ(Play(seconds, 0), 16);
  EXPECT_EQ(Play(seconds, 1), 16);
  EXPECT_EQ(Play(seconds, 4), 16);
  EXPECT_EQ(Play(seconds, kNoBound), 16);
}

std::int64_t Recursion(const Seconds& seconds, std::int64_t bound) {
  const std::size_t steps = seconds.front().size();
  std::vector<std::vector<std::int64_t>> ends(seconds.size(),
                                              std::vector<std::int64_t>(steps + 1, 0));
  std::int64_t total = 0;
  for (std::size_t k = 1; k <= steps; ++k) {
    std::int64_t gate = 0;  // when every worker has finished step k - 1 - s
    const auto slowest = static_cast<std::int64_t>(k) - 1;
    if (bound != kNoBound && slowest - bound > 0) {
      for (const auto& of_worker : ends) {
        gate = std::max(gate, of_worker[static_cast<std::size_t>(slowest - bound)]);
      }
    }
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      ends[i][k] = std::max(ends[i][k - 1], gate) + seconds[i][k - 1];
      total = std::max(total, ends[i][k]);
    }
  }
  return total;
}

TEST(StaleSynchronous, RandomStepTimesFollowTheRecursion) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    Seconds seconds(1 + random.Below(8), std::vector<int>(12));
    for (auto& row : seconds) {
      for (int& x : row) {
        x = random.Below(4) == 0 ? 5 : 1 + static_cast<int>(random.Below(2));
      }
    }
    std::int64_t last = std::numeric_limits<std::int64_t>::max();
    for (const std::int64_t bound :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{4}, kNoBound}) {
      const std::int64_t total = Play(seconds, bound);
      ASSERT_EQ(total, Recursion(seconds, bound)) << "seed " << seed << ", bound " << bound;
      ASSERT_LE(total, last) << "a larger bound never costs time";
      last = total;
    }
  }
}

}  // namespace
}  // namespace ranklab::ps
