// The time that a staleness bound gives, in virtual time, against the recursion of Ho et al.:
//   f_i(k) = max(f_i(k-1), max_j f_j(k-1-s)) + x_i(k)
// with the real client, server, shard and messenger, and steps that are timers.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>
#include <sstream>
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

std::int64_t Play(const Seconds& seconds, std::int64_t bound, int servers = 2) {
  sim::VirtualLoop loop;
  MessengerNetwork network(loop);
  PsCluster cluster(loop, network,
                    {.workers = static_cast<int>(seconds.size()),
                     .servers = servers,
                     .elements = TimedWorker::kElements,
                     .bound = {bound}},
                    CountingFactory());
  std::vector<std::unique_ptr<TimedWorker>> workers;
  for (std::size_t rank = 0; rank < seconds.size(); ++rank) {
    workers.push_back(std::make_unique<TimedWorker>(loop, cluster.client(static_cast<Rank>(rank)),
                                                    seconds[rank]));
    workers.back()->Begin();
  }
  EXPECT_TRUE(loop.Run(10'000'000));
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

// Python's random.Random(seed): MT19937 seeded by init_by_array, doubles of 53 bits. Source:
// Matsumoto and Nishimura, mt19937ar.c, 2002.
class PythonRandom {
 public:
  explicit PythonRandom(std::uint32_t seed) {
    constexpr std::size_t kSize = 624;
    std::vector<std::uint32_t> state(kSize, 19650218U);
    const auto mixed = [&state](std::size_t i) {
      const std::uint32_t last = state[i - 1];
      return last ^ (last >> 30U);
    };
    const auto advance = [&state](std::size_t& i) {
      if (++i == kSize) {
        state[0] = state[kSize - 1];
        i = 1;
      }
    };
    for (std::size_t i = 1; i < kSize; ++i) {
      state[i] = 1812433253U * mixed(i) + static_cast<std::uint32_t>(i);
    }
    std::size_t i = 1;
    for (std::size_t k = 0; k < kSize; ++k, advance(i)) {
      state[i] = (state[i] ^ (mixed(i) * 1664525U)) + seed;
    }
    for (std::size_t k = 1; k < kSize; ++k, advance(i)) {
      state[i] = (state[i] ^ (mixed(i) * 1566083941U)) - static_cast<std::uint32_t>(i);
    }
    state[0] = 0x80000000U;
    std::stringstream text;
    for (const std::uint32_t word : state) {
      text << word << ' ';
    }
    text << kSize;  // all words are used up: libstdc++'s form of an engine
    text >> engine_;
  }

  double Uniform() {
    const auto high = static_cast<double>(engine_() >> 5U);
    const auto low = static_cast<double>(engine_() >> 6U);
    return (high * 67108864.0 + low) / 9007199254740992.0;
  }

 private:
  std::mt19937 engine_;
};

TEST(StaleSynchronous, TheReferencesRandomIsPythons) {
  PythonRandom random(7);  // python3 -c 'import random; print(random.Random(7).random())'
  EXPECT_DOUBLE_EQ(random.Uniform(), 0.32383276483316237);
}

constexpr std::int64_t kBounds[] = {0, 1, 2, 4, 8, 16, kNoBound};

// 500 steps of 1 s, each with a chance of 5 % of 5 s instead. The totals are of a program that
// knows nothing of ours:
//   def total(x, s):
//       f = [[0] * 501 for _ in x]
//       for k in range(1, 501):
//           gate = max(r[k - 1 - s] for r in f) if s is not None and k - 1 - s > 0 else 0
//           for r, of in zip(f, x): r[k] = max(r[k - 1], gate) + of[k - 1]
//       return max(r[500] for r in f)
//   r = random.Random(7)
//   for n in (4, 8, 16):
//       x = [[5 if r.random() < .05 else 1 for _ in range(500)] for _ in range(n)]
//       print([total(x, s) for s in (0, 1, 2, 4, 8, 16, None)])
TEST(StaleSynchronous, RandomStragglersTakeTheTimesOfTheReferencesTable) {
  const std::vector<std::vector<std::int64_t>> table = {{956, 839, 756, 684, 648, 632, 632},
                                                        {1132, 891, 770, 676, 636, 612, 612},
                                                        {1628, 1112, 890, 752, 680, 636, 624}};
  PythonRandom random(7);
  std::size_t workers = 4;
  for (const std::vector<std::int64_t>& totals : table) {
    Seconds seconds(workers, std::vector<int>(500));
    for (auto& row : seconds) {
      for (int& x : row) {
        x = random.Uniform() < 0.05 ? 5 : 1;
      }
    }
    for (std::size_t i = 0; i < totals.size(); ++i) {
      EXPECT_EQ(Play(seconds, kBounds[i], /*servers=*/1), totals[i])
          << workers << " workers, a bound of " << kBounds[i];
    }
    workers *= 2;
  }
}

// Rotating: in each step another worker takes 5 s, so that a lead of N - 1 steps hides all of it.
// Persistent: worker 0 takes 2 s in every step, and no bound makes that less than 2 s a step.
TEST(StaleSynchronous, ABoundHelpsARotatingStragglerAndNotAPersistentOne) {
  constexpr int kSteps = 64;
  for (const int workers : {4, 8, 16}) {
    Seconds rotating(static_cast<std::size_t>(workers), std::vector<int>(kSteps, 1));
    Seconds persistent = rotating;
    for (std::size_t step = 0; step < kSteps; ++step) {
      rotating[step % static_cast<std::size_t>(workers)][step] = 5;
      persistent[0][step] = 2;
    }
    const std::int64_t hidden = kSteps + 4 * (kSteps / workers);  // what each has to do by itself
    for (const std::int64_t bound : kBounds) {
      EXPECT_EQ(Play(persistent, bound, /*servers=*/1), 2 * kSteps);
      const std::int64_t total = Play(rotating, bound, /*servers=*/1);
      EXPECT_EQ(total, Recursion(rotating, bound)) << workers << " workers, a bound of " << bound;
      if (bound == 0) {
        EXPECT_EQ(total, 5 * kSteps);
      } else if (bound >= workers) {
        EXPECT_EQ(total, hidden);
      }
    }
  }
}

}  // namespace
}  // namespace ranklab::ps
