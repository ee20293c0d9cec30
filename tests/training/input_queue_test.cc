#include "worker/input_queue.h"

#include <map>

#include <gtest/gtest.h>

namespace ranklab::worker {
namespace {

// Sample i has input i and label i.
Dataset Numbered(int samples) {
  Dataset data{.inputs = 1, .classes = samples, .train = {}, .test = {}};
  for (int i = 0; i < samples; ++i) {
    data.train.inputs.push_back(static_cast<float>(i));
    data.train.labels.push_back(i);
  }
  return data;
}

TEST(InputQueue, AllRanksTogetherSeeEachSampleOnceAnEpoch) {
  const Dataset data = Numbered(103);
  const SamplePlan plan(5, 103, 20);
  std::map<int, int> seen;
  for (Rank rank = 0; rank < 3; ++rank) {
    InputQueue queue(data, plan, {.rank = rank, .ranks = 3});
    for (Step step = 1; step <= 6; ++step) {
      auto batch = queue.Next(std::chrono::seconds(10));
      ASSERT_TRUE(batch.ok()) << batch.status();
      EXPECT_EQ(batch->step, step);
      EXPECT_EQ(batch->global_samples, step == 6 ? 3 : 20);
      for (std::int64_t i = 0; i < batch->samples(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        EXPECT_EQ(batch->rows.inputs[at], static_cast<float>(batch->rows.labels[at]));
        ++seen[batch->rows.labels[at]];
      }
    }
  }
  EXPECT_EQ(seen.size(), 103U);
  for (const auto& [sample, times] : seen) {
    EXPECT_EQ(times, 1) << "sample " << sample;
  }
}

TEST(InputQueue, SeveralLoadersGiveTheBatchesOfOneInTheirOrder) {
  const Dataset data = Numbered(103);
  const SamplePlan plan_of_one(5, 103, 20);
  const SamplePlan plan_of_several(5, 103, 20);
  InputQueue one(data, plan_of_one, {});
  InputQueue several(data, plan_of_several, {.depth = 3, .loaders = 4});
  for (Step step = 1; step <= 40; ++step) {
    const auto expected = one.Next(std::chrono::seconds(10));
    const auto found = several.Next(std::chrono::seconds(10));
    ASSERT_TRUE(expected.ok() && found.ok());
    EXPECT_EQ(found->step, step);
    EXPECT_EQ(found->rows.labels, expected->rows.labels);
    EXPECT_LE(several.depth(), 3);
  }
}

TEST(InputQueue, EndsWhileTheLoaderIsHeldUp) {
  const Dataset data = Numbered(8);
  const SamplePlan plan(5, 8, 8);
  constexpr int kDepth = 1;
  InputQueue queue(data, plan, {.rank = 0, .ranks = 1, .depth = kDepth});
  ASSERT_TRUE(queue.Next(std::chrono::seconds(10)).ok());
  queue.SlowDown(std::chrono::hours(1));
  // What was ready, and the batches that were past the hold-up or on their way to it, still come.
  absl::Status starved;
  int came = 0;
  while (starved.ok() && came <= kDepth + 2) {
    const auto batch = queue.Next(std::chrono::milliseconds(50));
    starved = batch.status();
    came += batch.ok() ? 1 : 0;
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(starved)) << starved << " after " << came << " batches";
  EXPECT_LE(came, kDepth + 2);
  // The destructor does not wait for the hour.
}

}  // namespace
}  // namespace ranklab::worker
