#include "worker/sample_plan.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/random.h"

namespace ranklab::worker {
namespace {

// Another plan each day would find more than the same one: the seed comes from the environment, or
// is fixed, and is printed.
std::uint64_t TestSeed() {
  const char* given = std::getenv("RANKLAB_TEST_SEED");
  return given == nullptr ? 20240607 : std::stoull(given);
}

struct Sizes {
  std::uint64_t seed = 0;
  std::int64_t data = 0;
  std::int64_t batch = 0;
};

// A hundred plans, among them batches of one, of the data set and beyond.
std::vector<Sizes> ManySizes() {
  const std::uint64_t seed = TestSeed();
  std::cout << "replay: RANKLAB_TEST_SEED=" << seed << " sample_plan_test\n";
  Random random(seed);
  std::vector<Sizes> sizes{{1, 1, 1}, {2, 7, 1}, {3, 7, 7}, {4, 7, 8}, {5, 8, 4}};
  while (sizes.size() < 100) {
    sizes.push_back({random.Next(), 1 + static_cast<std::int64_t>(random.Below(200)),
                     1 + static_cast<std::int64_t>(random.Below(50))});
  }
  return sizes;
}

TEST(SamplePlan, EverySampleComesExactlyOnceAnEpoch) {
  for (const Sizes& sizes : ManySizes()) {
    const SamplePlan plan(sizes.seed, sizes.data, sizes.batch);
    SamplePosition position = plan.Start();
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<int> seen(sizes.data, 0);
      while (position.epoch == epoch) {
        const SamplePlan::GlobalBatch batch = plan.At(position);
        ASSERT_FALSE(batch.samples.empty());
        ASSERT_LE(std::ssize(batch.samples), sizes.batch);
        for (const std::int64_t sample : batch.samples) {
          ++seen.at(sample);
        }
        position = plan.After(position);
      }
      ASSERT_EQ(position.epoch, epoch + 1);
      ASSERT_THAT(seen, testing::Each(1));
    }
  }
}

TEST(SamplePlan, RanksTogetherComputeTheBatchWhateverTheirNumber) {
  for (const int ranks : {1, 2, 3, 4, 7, 16, 100}) {
    for (const std::int64_t size : {0, 1, 5, 16, 17, 64, 1437}) {
      std::int64_t next = 0;
      for (Rank rank = 0; rank < ranks; ++rank) {
        const auto [first, last] = SamplePlan::ShareOf(size, rank, ranks);
        ASSERT_EQ(first, next);
        ASSERT_GE(last - first, size / ranks);
        ASSERT_LE(last - first, (size + ranks - 1) / ranks);
        next = last;
      }
      ASSERT_EQ(next, size);
    }
  }
}

TEST(SamplePlan, ARestartFromAnyPositionGoesOnWithTheSameSamples) {
  for (const Sizes& sizes : ManySizes()) {
    const SamplePlan plan(sizes.seed, sizes.data, sizes.batch);
    SamplePosition position = plan.Start();
    for (int step = 0; step < 20; ++step) {
      const SamplePlan restarted(sizes.seed, sizes.data, sizes.batch);
      ASSERT_EQ(restarted.At(position).samples, plan.At(position).samples);
      position = plan.After(position);
    }
  }
}

TEST(SamplePlan, PositionOfAStepIsWhereWalkingLeads) {
  for (const Sizes& sizes : ManySizes()) {
    const SamplePlan plan(sizes.seed, sizes.data, sizes.batch);
    SamplePosition position = plan.Start();
    std::int64_t short_batches = 0;
    for (Step step = 1; step <= 60; ++step) {
      const SamplePosition found = plan.PositionOf(step);
      ASSERT_EQ(found.seed, position.seed);
      ASSERT_EQ(found.epoch, position.epoch);
      ASSERT_EQ(found.consumed, position.consumed);
      short_batches += std::ssize(plan.At(position).samples) < sizes.batch ? 1 : 0;
      ASSERT_EQ(plan.ShortBatchesIn(step), short_batches);
      position = plan.After(position);
    }
  }
}

TEST(SamplePlan, EpochsAndSeedsHaveOrdersOfTheirOwn) {
  const SamplePlan plan(1, 100, 100);
  const auto first = plan.At({.seed = 1, .epoch = 0, .consumed = 0}).samples;
  EXPECT_NE(first, plan.At({.seed = 1, .epoch = 1, .consumed = 0}).samples);
  EXPECT_NE(first, SamplePlan(2, 100, 100).At({.seed = 2, .epoch = 0, .consumed = 0}).samples);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  // Back to an epoch that is no longer kept.
  EXPECT_EQ(first, plan.At({.seed = 1, .epoch = 0, .consumed = 0}).samples);
}

TEST(SamplePlan, EverySampleIsAsLikelyAtEveryPlace) {
  constexpr std::int64_t kData = 10;
  constexpr int kEpochs = 20'000;
  const SamplePlan plan(TestSeed(), kData, kData);
  std::vector<double> counts(kData * kData, 0.0);
  for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const auto batch = plan.At({.seed = TestSeed(), .epoch = epoch, .consumed = 0});
    for (std::int64_t place = 0; place < kData; ++place) {
      counts[place * kData + batch.samples[place]] += 1;
    }
  }
  double chi_square = 0;
  for (const double count : counts) {
    const double expected = static_cast<double>(kEpochs) / kData;
    chi_square += (count - expected) * (count - expected) / expected;
  }
  // 81 degrees of freedom: above 150 in about 5 of a million cases.
  EXPECT_LT(chi_square, 150) << "replay: RANKLAB_TEST_SEED=" << TestSeed();
}

TEST(SamplePlan, PositionsOfAnotherPlanAreAnError) {
  const SamplePlan plan(1, 10, 3);
  EXPECT_DEATH(plan.At({.seed = 2, .epoch = 0, .consumed = 0}), "another seed");
  EXPECT_DEATH(plan.At({.seed = 1, .epoch = 0, .consumed = 10}), "10 of 10 samples");
}

}  // namespace
}  // namespace ranklab::worker
