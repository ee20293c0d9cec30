// What the catalog's schedules do not use yet, and the pieces of the executor by themselves.
#include "collectives/executor.h"

#include <cmath>
#include <deque>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/progress.h"
#include "collectives/schedule/ring.h"
#include "collectives/schedule/verify.h"
#include "compute/operations.h"
#include "core/random.h"
#include "core/status.h"
#include "tests/collectives/collective_cluster.h"

namespace ranklab::collectives {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Out of place, with scratch, local ops and two channels: each of two ranks copies its input to
// scratch, sends one half in each channel, and sums into its output.
Schedule MakeExchange() {
  Schedule schedule;
  schedule.name = "exchange";
  schedule.group_size = 2;
  schedule.input_chunks = 2;
  schedule.output_chunks = 2;
  schedule.scratch_chunks = 3;
  schedule.ops_of = [](Rank rank) -> std::vector<Op> {
    const Rank peer = 1 - rank;
    return {
        {.kind = OpKind::kCopy, .chunk = 4, .count = 2, .source = 0},
        {.kind = OpKind::kCopy, .chunk = 2, .count = 2, .source = 0},
        {.kind = OpKind::kSend, .peer = peer, .chunk = 4, .channel = 0, .after = {0}},
        {.kind = OpKind::kSend, .peer = peer, .chunk = 5, .channel = 1, .after = {0}},
        {.kind = OpKind::kRecv, .peer = peer, .chunk = 6, .channel = 0},
        {.kind = OpKind::kRecvReduce, .peer = peer, .chunk = 3, .channel = 1, .after = {1}},
        {.kind = OpKind::kReduce, .chunk = 2, .source = 6, .channel = 0, .after = {1, 4}},
    };
  };
  return schedule;
}

struct TwoRanks {
  explicit TwoRanks(const Schedule& schedule) {
    for (const Rank rank : {0, 1}) {
      groups.push_back(cluster.World(rank));
      plans.push_back(MakeRankPlan(schedule, rank));
    }
  }
  void Run(std::vector<std::vector<float>>& inputs, std::vector<std::vector<float>>& outputs) {
    for (const Rank rank : {0, 1}) {
      const auto r = static_cast<std::size_t>(rank);
      Execute(cluster.Deps(rank), groups[r],
              {.plan = plans[r],
               .landings = landings,
               .buffers = {compute::HostView(std::span(inputs[r])),
                           compute::HostView(std::span(outputs[r]))},
               .deadline = std::chrono::seconds(1)},
              nullptr, endings[r].On(cluster.loop()));
    }
    cluster.loop().Run();
  }

  transport::BufferPool landings{1 << 30};
  std::deque<ProcessGroup> groups;
  std::deque<RankPlan> plans;
  Ending endings[2];
  CollectiveCluster cluster{{.ranks = 2}};
};

TEST(Executor, RunsLocalOpsScratchChannelsAndSchedulesOutOfPlace) {
  ASSERT_EQ(Verify(MakeExchange()), absl::OkStatus());
  TwoRanks ranks(MakeExchange());
  std::vector<std::vector<float>> inputs = {{1, 2, 3, 4}, {10, 20, 30, 40}};
  std::vector<std::vector<float>> outputs = {{0, 0, 0, 0}, {0, 0, 0, 0}};
  ranks.Run(inputs, outputs);
  for (const std::size_t r : {0, 1}) {
    ASSERT_TRUE(ranks.endings[r].ok());
    EXPECT_THAT(outputs[r], ElementsAre(11, 22, 33, 44));
  }
  EXPECT_THAT(inputs[0], ElementsAre(1, 2, 3, 4));
}

TEST(Executor, RefusesElementCountsThatItCannotCutEqually) {
  TwoRanks ranks(MakeExchange());
  std::vector<std::vector<float>> inputs = {{1, 2, 3}, {1, 2, 3, 4}};
  std::vector<std::vector<float>> outputs = {{0, 0, 0}, {0, 0}};
  ranks.Run(inputs, outputs);
  EXPECT_THAT(ranks.endings[0].status->ToString(), HasSubstr("3 elements cannot be"));
  EXPECT_THAT(ranks.endings[1].status->ToString(), HasSubstr("an output of 4 elements"));
}

// 48 MiB in 64 chunks: 24 MiB arrive to be reduced, of which at most 8 MiB may wait in landings.
TEST(Executor, KeepsTheMemoryForMessagesAheadWithinItsWindow) {
  TwoRanks ranks(*BuildRingAllReduce({.group_size = 2, .chunks_per_rank = 32}));
  const std::vector<float> ones(12 << 20, 1.0F);
  std::vector<std::vector<float>> inputs = {ones, ones};
  ranks.Run(inputs, inputs);
  ASSERT_TRUE(ranks.endings[0].ok() && ranks.endings[1].ok());
  EXPECT_EQ(inputs[1].back(), 2.0F);
  EXPECT_LE(ranks.landings.idle_bytes(), 2 * (8 << 20));  // of two ranks
  EXPECT_GT(ranks.landings.idle_bytes(), 0);
}

TEST(RankPlan, NumbersMessagesByPeerChannelAndDirection) {
  const RankPlan plan = MakeRankPlan(*BuildRingAllReduce({.group_size = 2}), 0);
  // send, recv-reduce, send, recv, all with rank 1.
  std::vector<std::uint32_t> parts;
  for (const RankPlan::PlannedOp& planned : plan.ops) {
    parts.push_back(planned.part);
  }
  EXPECT_THAT(parts, ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(plan.reductions, ElementsAre(1));
}

TEST(Progress, AnOverwritingMessageMayLandBeforeItsReceiveStarts) {
  const RankPlan plan = MakeRankPlan(*BuildRingAllReduce({.group_size = 2}), 0);
  Progress progress(plan);
  EXPECT_EQ(progress.TakeStartable(), 0);  // send chunk 1
  EXPECT_EQ(progress.TakeStartable(), 1);  // recv-reduce chunk 0
  EXPECT_EQ(progress.TakeStartable(), std::nullopt);
  EXPECT_EQ(progress.TakeLandable(), std::nullopt) << "the send may still read chunk 1";
  progress.Finish(0);
  EXPECT_EQ(progress.TakeLandable(), 3);
  EXPECT_EQ(progress.TakeStartable(), std::nullopt) << "the send before it has not started";
  progress.Finish(1);
  EXPECT_EQ(progress.TakeStartable(), 2);
  EXPECT_EQ(progress.TakeStartable(), 3);
  EXPECT_EQ(progress.unfinished(), 2);
}

absl::Status Reduce(compute::ReduceOp op, const compute::TensorView& target,
                    const compute::TensorView& source) {
  std::optional<absl::Status> result;
  CpuReducer().Reduce(op, target, source, [&](absl::Status status) { result = status; });
  return result.value();
}

TEST(CpuReducer, SumsWrapAndExtremesKeepTheTargetBesideNan) {
  constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
  std::vector<std::int32_t> a = {1, kMax, -4};
  std::vector<std::int32_t> b = {2, 1, -5};
  ASSERT_TRUE(Reduce(compute::ReduceOp::kSum, compute::HostView(std::span(a)),
                     compute::HostView(std::span(b)))
                  .ok());
  EXPECT_THAT(a, ElementsAre(3, std::numeric_limits<std::int32_t>::min(), -9));

  std::vector<float> x = {1, NAN, 3};
  std::vector<float> y = {2, 1, NAN};
  ASSERT_TRUE(Reduce(compute::ReduceOp::kMax, compute::HostView(std::span(x)),
                     compute::HostView(std::span(y)))
                  .ok());
  EXPECT_EQ(x[0], 2);
  EXPECT_TRUE(std::isnan(x[1]));
  EXPECT_EQ(x[2], 3);
}

TEST(CpuReducer, SumsOf16BitsAreRoundedOnce) {
  constexpr std::int64_t kElements = 5000;  // more than one piece
  for (const compute::DType dtype : {compute::DType::kBFloat16, compute::DType::kFloat16}) {
    Random random(3);
    std::vector<float> a;
    std::vector<float> b;
    for (std::int64_t i = 0; i < kElements; ++i) {
      a.push_back(static_cast<float>(random.Normal()));
      b.push_back(static_cast<float>(random.Normal()));
    }
    std::vector<std::uint16_t> target(kElements);
    std::vector<std::uint16_t> source(kElements);
    const auto view = [&](std::vector<std::uint16_t>& values) {
      return compute::TensorView{
          reinterpret_cast<std::byte*>(values.data()), dtype, {kElements, 1, 1, 1}, nullptr};
    };
    for (const auto& [floats, rounded] : {std::pair{&a, &target}, {&b, &source}}) {
      ASSERT_TRUE(compute::Convert(compute::HostView(std::span(*floats)), view(*rounded)).ok());
      ASSERT_TRUE(compute::Convert(view(*rounded), compute::HostView(std::span(*floats))).ok());
    }
    std::vector<float> sums;
    for (std::size_t i = 0; i < a.size(); ++i) {
      sums.push_back(a[i] + b[i]);
    }
    std::vector<std::uint16_t> expected(kElements);
    ASSERT_TRUE(compute::Convert(compute::HostView(std::span(sums)), view(expected)).ok());
    ASSERT_TRUE(Reduce(compute::ReduceOp::kSum, view(target), view(source)).ok());
    EXPECT_EQ(target, expected);
  }
}

}  // namespace
}  // namespace ranklab::collectives
