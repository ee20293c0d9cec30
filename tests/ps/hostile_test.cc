// What a client pushes is counted once and never lost, however requests are delayed, reordered and
// repeated. A worker's gradients are 8^rank everywhere, and the optimizer only adds: the digits of
// each parameter, in base 8, say how many steps of each worker are in it.
#include <cstdlib>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "tests/ps/hostile_network.h"

namespace ranklab::ps {
namespace {

constexpr std::int64_t kNoBound = StalenessBound::kUnbounded;
constexpr Step kMostSteps = 6;  // below 8, and 8^5 x 7 is exact in float32

float GradientOf(Rank worker) { return static_cast<float>(1 << (3 * worker)); }
Step StepsOf(Rank worker, float parameter) {
  return (static_cast<Step>(parameter) >> (3 * worker)) & 7;
}

class RandomWorker {
 public:
  RandomWorker(EventLoop& loop, PsCluster& cluster, const ClusterOptions& options, Rank rank,
               Random random)
      : loop_(loop),
        client_(cluster.client(rank)),
        options_(options),
        rank_(rank),
        random_(random),
        steps_(kMostSteps - static_cast<Step>(random_.Below(3))),
        gradients_(static_cast<std::size_t>(options.elements), GradientOf(rank)),
        parameters_(gradients_.size()) {}

  void Begin() { Pull(1); }
  void Lose() { lost_ = true; }
  bool finished() const { return finished_; }
  Step steps() const { return steps_; }

 private:
  void Pull(Step step) {
    client_.Pull(step, {0, options_.elements}, parameters_.data(),
                 [this, step](const absl::StatusOr<Pulled>& pulled) {
                   if (lost_) {
                     return;
                   }
                   ASSERT_TRUE(pulled.ok()) << pulled.status().ToString();
                   CheckRead(step, *pulled);
                   if (step > steps_) {
                     Leave();
                     return;
                   }
                   loop_.RunAt(loop_.Now() + std::chrono::nanoseconds(random_.Below(2000)),
                               [this, step] { PushInBuckets(step); });
                 });
  }

  // Sees its own steps, all of them and no more, and nobody more than the bound behind.
  void CheckRead(Step step, const Pulled& pulled) {
    for (const float parameter : parameters_) {
      ASSERT_EQ(StepsOf(rank_, parameter), step - 1) << "worker " << rank_;
      for (Rank other = 0; other < options_.workers; ++other) {
        const Step seen = StepsOf(other, parameter);
        ASSERT_LE(seen, kMostSteps);
        if (options_.bound.steps == 0) {
          ASSERT_LE(seen, step - 1) << "worker " << other << " as seen by " << rank_;
        }
      }
    }
    if (options_.elements > 0 && options_.bound.steps != kNoBound) {
      ASSERT_LE(step - 1 - pulled.clock, options_.bound.steps);
    }
  }

  void PushInBuckets(Step step) {
    if (lost_) {
      return;
    }
    std::vector<std::int64_t> cuts{0, options_.elements};
    for (std::uint64_t i = random_.Below(3); i > 0; --i) {
      cuts.push_back(static_cast<std::int64_t>(
          random_.Below(static_cast<std::uint64_t>(options_.elements) + 1)));
    }
    std::sort(cuts.begin(), cuts.end());
    std::vector<KeyRange> buckets;
    for (std::size_t i = 1; i < cuts.size(); ++i) {
      buckets.push_back({cuts[i - 1], cuts[i]});
    }
    random_.Shuffle(std::span<KeyRange>(buckets));
    for (const KeyRange bucket : buckets) {
      client_.Push(step, bucket, gradients_.data() + bucket.begin,
                   [this](const absl::Status& status) {
                     ASSERT_TRUE(lost_ || status.ok()) << status.ToString();
                   });
    }
    End(step);
    Pull(step + 1);
  }

  // The others may have more steps to go.
  void Leave() {
    client_.Leave([this](const absl::Status& status) {
      ASSERT_TRUE(lost_ || status.ok()) << status.ToString();
      finished_ = true;
    });
  }

  // A part may come after the end, on this network: then the end is refused, and asked for again.
  void End(Step step) {
    client_.EndStep(step, {.weight = 1.0}, [this, step](const absl::Status& status) {
      if (absl::IsFailedPrecondition(status) && !lost_) {
        End(step);
        return;
      }
      ASSERT_TRUE(lost_ || status.ok()) << status.ToString();
    });
  }

  EventLoop& loop_;
  Client& client_;
  const ClusterOptions& options_;
  Rank rank_;
  Random random_;
  Step steps_;  // that it takes before it leaves
  std::vector<float> gradients_;
  std::vector<float> parameters_;
  bool lost_ = false;
  bool finished_ = false;
};

ClusterOptions RandomCluster(Random& random) {
  constexpr std::int64_t kBounds[] = {0, 0, 1, 2, kNoBound};
  ClusterOptions options;
  options.workers = 1 + static_cast<int>(random.Below(5));
  options.servers = 1 + static_cast<int>(random.Below(3));
  options.elements = static_cast<std::int64_t>(random.Below(30));
  options.bound = {kBounds[random.Below(std::size(kBounds))]};
  options.order = random.Below(2) == 0 ? Order::kArrival : Order::kRank;
  options.block_elements = 1 + static_cast<std::int64_t>(random.Below(8));
  options.message = 4 * (1 + static_cast<Bytes>(random.Below(8)));
  return options;
}

void CheckStaleness(const PsCluster& cluster, const ClusterOptions& options) {
  for (const ServerReport& report : cluster.Reports()) {
    for (const auto& histogram : report.staleness) {
      if (!histogram.empty()) {
        ASSERT_LE(histogram.rbegin()->first, options.bound.steps);
      }
    }
  }
}

using Workers = std::vector<std::unique_ptr<RandomWorker>>;

// Every gradient once: the digits of live workers are all their steps, those of a lost one are the
// steps that it has ended on that server, the same for all its elements.
void CheckFinal(PsCluster& cluster, const ClusterOptions& options, const Workers& workers,
                Rank lost) {
  const std::vector<float> parameters = cluster.Parameters();
  Step steps = 0;
  for (Rank worker = 0; worker < options.workers; ++worker) {
    steps += workers[static_cast<std::size_t>(worker)]->steps();
    for (Rank server = 0; server < options.servers; ++server) {
      const KeyRange range = cluster.shard(server).options().range;
      for (std::int64_t element = range.begin; element < range.end; ++element) {
        const Step expected =
            worker == lost ? StepsOf(worker, parameters[static_cast<std::size_t>(range.begin)])
                           : workers[static_cast<std::size_t>(worker)]->steps();
        ASSERT_EQ(StepsOf(worker, parameters[static_cast<std::size_t>(element)]), expected)
            << "worker " << worker << ", element " << element;
      }
    }
  }
  if (lost < 0) {
    Bytes pushed = 0;
    for (const ServerReport& report : cluster.Reports()) {
      pushed += report.bytes_pushed;
    }
    ASSERT_EQ(pushed, steps * options.elements * 4);
  }
}

void Play(std::uint64_t seed) {
  Random random(seed);
  const ClusterOptions options = RandomCluster(random);
  sim::VirtualLoop loop;
  HostileNetwork network(loop, random.Split(1), {});
  PsCluster cluster(loop, network, options, CountingFactory());
  Workers workers;
  for (Rank rank = 0; rank < options.workers; ++rank) {
    workers.push_back(std::make_unique<RandomWorker>(
        loop, cluster, options, rank, random.Split(100 + static_cast<std::uint64_t>(rank))));
    workers.back()->Begin();
  }
  Rank lost = -1;
  if (options.workers > 1 && random.Below(3) == 0) {
    lost = static_cast<Rank>(random.Below(static_cast<std::uint64_t>(options.workers)));
    loop.RunAt(std::chrono::nanoseconds(random.Below(60'000)), [&] {
      workers[static_cast<std::size_t>(lost)]->Lose();
      cluster.Remove(lost);
    });
  }
  ASSERT_TRUE(loop.Run(300'000)) << "it does not end";
  for (Rank rank = 0; rank < options.workers; ++rank) {
    ASSERT_TRUE(rank == lost || workers[static_cast<std::size_t>(rank)]->finished())
        << "worker " << rank << " waits for " << cluster.client(rank).WaitingFor();
  }
  CheckStaleness(cluster, options);
  CheckFinal(cluster, options, workers, lost);
}

TEST(HostileNetwork, EveryGradientIsCountedOnceWhateverComesLateTwiceOrInDisorder) {
  std::uint64_t first = 1;
  std::uint64_t last = 300;
  if (const char* seeds = std::getenv("RANKLAB_SEEDS")) {  // more, by hand
    last = std::strtoull(seeds, nullptr, 10);
  }
  if (const char* seed = std::getenv("RANKLAB_SEED")) {
    first = last = std::strtoull(seed, nullptr, 10);
  }
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    Play(seed);
    if (HasFailure()) {
      FAIL() << "replay with: RANKLAB_SEED=" << seed
             << " ps_cluster_test --gtest_filter=HostileNetwork.*";
    }
  }
}

}  // namespace
}  // namespace ranklab::ps
