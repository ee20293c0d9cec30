#include "ps/shard.h"

#include <cmath>
#include <limits>
#include <optional>

#include <gtest/gtest.h>

#include "tests/ps/shard_fixture.h"

namespace ranklab::ps {
namespace {

TEST_F(ShardTest, SynchronousPullsWaitForEveryWorkersStep) {
  Make(2, 0);
  EXPECT_EQ(Pull(0, 1)->values, Values(6, 0.0F));
  PushStep(0, 1, 1.0F);
  const auto early = Pull(0, 2);
  loop_.Run();
  EXPECT_EQ(early->runs, 0);
  EXPECT_EQ(*(*shard_).parameters(), 0.0F);
  PushStep(1, 1, 10.0F);
  EXPECT_EQ(early->runs, 0) << "not before the update has run";
  loop_.Run();
  EXPECT_EQ(early->values, Values(6, 11.0F));
  EXPECT_EQ(early->clock, 1);
  EXPECT_EQ(early->version, 1);
  EXPECT_EQ(early->runs, 1);
  EXPECT_EQ((*shard_)->counters().parked_pulls, 1);
}

// Each server begins with another worker, so that two servers do not fill one worker's port while
// the others' are idle.
TEST_F(ShardTest, ReadersThatBecomeReadyTogetherAreAnsweredInTurn) {
  shard_.emplace(loop_, ShardOptions{.range = kRange, .worker_count = 3, .first_answered = 1},
                 CountingFactory());
  std::vector<Rank> answered;
  for (const Rank worker : {2, 0, 1}) {
    PushStep(worker, 1, 1.0F);
    for (const KeyRange part : {KeyRange{10, 13}, KeyRange{13, 16}}) {
      (*shard_)->Pull(worker, 2, part, [&answered, worker](const absl::StatusOr<PullReply>&) {
        answered.push_back(worker);
      });
    }
  }
  loop_.Run();
  EXPECT_EQ(answered, (std::vector<Rank>{1, 1, 2, 2, 0, 0}));
}

TEST_F(ShardTest, PushesOf16BitsAreSummedInFloat32) {
  shard_.emplace(loop_,
                 ShardOptions{.range = kRange,
                              .worker_count = 2,
                              .wire = compute::DType::kBFloat16,
                              .block_elements = 4},
                 CountingFactory());
  // 256 and 1 in bfloat16, whose sum is no bfloat16.
  for (const auto& [worker, bits] : {std::pair{0, std::uint16_t{0x4380}}, {1, {0x3F80}}}) {
    std::vector<std::uint16_t> gradients(6, bits);
    EXPECT_EQ((*shard_)->LandingFor(worker, 1, kRange), nullptr) << "of another dtype";
    ASSERT_TRUE((*shard_)
                    ->Push(worker, 1, kRange,
                           {reinterpret_cast<std::byte*>(gradients.data()),
                            compute::DType::kBFloat16,
                            {6, 1, 1, 1},
                            nullptr})
                    .ok());
    EXPECT_EQ(PushAll(worker, 1, 1.0F).code(), absl::StatusCode::kInvalidArgument) << "float32";
    ASSERT_TRUE(Finish(worker, 1).ok());
  }
  const auto read = Pull(0, 2);
  loop_.Run();
  EXPECT_EQ(read->values, Values(6, 257.0F));
}

TEST_F(ShardTest, APullAsksForAnyPart) {
  Make(1, 0);
  Values gradients{1, 2, 3, 4, 5, 6};
  ASSERT_TRUE((*shard_)->Push(0, 1, kRange, Float32View(gradients)).ok());
  ASSERT_TRUE(Finish(0, 1).ok());
  const auto read = Pull(0, 2, {12, 15});
  const auto nothing = Pull(0, 2, {12, 12});
  loop_.Run();
  EXPECT_EQ(read->values, (Values{3, 4, 5}));
  EXPECT_TRUE(nothing->status.ok());
}

TEST_F(ShardTest, PartsComeInAnyOrderAndCountOnce) {
  Make(1, 0);
  EXPECT_TRUE(Push(0, 1, {14, 16}, 3.0F).ok());
  EXPECT_TRUE(Push(0, 1, {10, 12}, 1.0F).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Finish(0, 1)));
  EXPECT_TRUE(absl::IsAlreadyExists(Push(0, 1, {14, 16}, 7.0F)));
  EXPECT_TRUE(absl::IsAlreadyExists(Push(0, 1, {15, 16}, 7.0F)));
  EXPECT_TRUE(absl::IsInvalidArgument(Push(0, 1, {13, 15}, 7.0F))) << "half of it was counted";
  EXPECT_TRUE(Push(0, 1, {12, 14}, 2.0F).ok());
  EXPECT_TRUE(Finish(0, 1).ok());
  loop_.Run();
  EXPECT_TRUE(absl::IsAlreadyExists(Push(0, 1, {12, 14}, 7.0F)));
  EXPECT_TRUE(absl::IsAlreadyExists(Finish(0, 1)));
  EXPECT_EQ(Pull(0, 2)->values, (Values{1, 1, 2, 2, 3, 3}));
}

TEST_F(ShardTest, AsynchronousStepsShowOnceEndedAndNotBefore) {
  Make(2, kNoBound);
  ASSERT_TRUE(PushAll(0, 1, 1.0F).ok());
  loop_.Run();
  EXPECT_EQ(Pull(1, 1)->values, Values(6, 0.0F));
  ASSERT_TRUE(Finish(0, 1).ok());
  const auto mine = Pull(0, 2);
  const auto theirs = Pull(1, 1);
  EXPECT_EQ(mine->runs, 0) << "read my writes";
  EXPECT_EQ(theirs->runs, 0) << "what was ended before a pull is in it";
  loop_.Run();
  EXPECT_EQ(mine->values, Values(6, 1.0F));
  EXPECT_EQ(theirs->values, Values(6, 1.0F));
  EXPECT_EQ(mine->clock, 0) << "worker 1 has not ended a step";
}

TEST_F(ShardTest, NoPullSeesHalfAnUpdate) {
  Make(2, kNoBound);
  PushStep(0, 1, 1.0F);
  ASSERT_TRUE(loop_.RunOne());  // the first of two blocks
  const auto read = Pull(1, 1);
  EXPECT_EQ(read->runs, 0);
  PushStep(1, 1, 10.0F);
  loop_.Run();
  EXPECT_EQ(read->values, Values(6, 1.0F)) << "the second update came after the pull";
}

TEST_F(ShardTest, APullInTheMiddleOfASumIsAnsweredAfterItNotAfterTheRound) {
  Make(3, 0);
  PushStep(0, 1, 1.0F);
  PushStep(1, 1, 10.0F);
  ASSERT_TRUE(loop_.RunOne());  // the first of two blocks
  const auto read = Pull(2, 1);
  EXPECT_EQ(read->runs, 0);
  loop_.Run();
  EXPECT_EQ(read->values, Values(6, 0.0F));
}

TEST_F(ShardTest, ABoundLetsTheFastRunAheadSoFar) {
  Make(2, 1);
  PushStep(0, 1, 1.0F);
  loop_.Run();
  EXPECT_EQ(Pull(0, 2)->runs, 1);
  PushStep(0, 2, 1.0F);
  loop_.Run();
  const auto third = Pull(0, 3);
  EXPECT_EQ(third->runs, 0);
  PushStep(1, 1, 10.0F);
  loop_.Run();
  EXPECT_EQ(third->values, Values(6, 12.0F));
  EXPECT_EQ(third->clock, 1);
  EXPECT_EQ(third->version, 3);
}

TEST_F(ShardTest, OverflowOnOneWorkerSkipsTheStepForAll) {
  Make(2, 0);
  ASSERT_TRUE(PushAll(0, 1, 1.0F).ok());
  ASSERT_TRUE(PushAll(1, 1, std::numeric_limits<float>::infinity()).ok());
  ASSERT_TRUE(Finish(0, 1).ok());
  ASSERT_TRUE(Finish(1, 1, 1.0, /*overflow=*/true).ok());
  const auto read = Pull(0, 2);
  loop_.Run();
  EXPECT_EQ(read->values, Values(6, 0.0F));
  EXPECT_TRUE(read->skipped);
  EXPECT_EQ(read->clock, 1);
  EXPECT_EQ(read->version, 0);
  PushStep(0, 2, 1.0F);
  PushStep(1, 2, 1.0F);
  loop_.Run();
  EXPECT_EQ(Pull(1, 3)->values, Values(6, 2.0F));
  EXPECT_FALSE(Pull(1, 3)->skipped);
}

TEST_F(ShardTest, AsynchronousOverflowSkipsOnlyThatWorkersStep) {
  Make(2, kNoBound);
  ASSERT_TRUE(PushAll(0, 1, std::nanf("")).ok());
  ASSERT_TRUE(Finish(0, 1, 1.0, /*overflow=*/true).ok());
  PushStep(1, 1, 2.0F);
  loop_.Run();
  EXPECT_EQ(Pull(0, 2)->values, Values(6, 2.0F));
  EXPECT_TRUE(Pull(0, 2)->skipped);
  EXPECT_FALSE(Pull(1, 2)->skipped);
  EXPECT_EQ((*shard_)->counters().skipped, 1);
  EXPECT_EQ((*shard_)->counters().updates, 1);
}

TEST_F(ShardTest, APullMayOvertakeTheEndOfItsStep) {
  Make(1, 0);
  ASSERT_TRUE(PushAll(0, 1, 1.0F).ok());
  const auto read = Pull(0, 2);
  loop_.Run();
  EXPECT_EQ(read->runs, 0);
  ASSERT_TRUE(Finish(0, 1).ok());
  loop_.Run();
  EXPECT_EQ(read->values, Values(6, 1.0F));
}

TEST_F(ShardTest, NonsenseIsRefusedAndChangesNothing) {
  Make(2, 0);
  const auto refused = [](const absl::Status& status) { return absl::IsInvalidArgument(status); };
  EXPECT_TRUE(refused(PushAll(-1, 1, 9.0F)));
  EXPECT_TRUE(refused(PushAll(2, 1, 9.0F)));
  EXPECT_TRUE(refused(PushAll(0, 0, 9.0F)));
  EXPECT_TRUE(refused(PushAll(0, -5, 9.0F)));
  EXPECT_TRUE(refused(PushAll(0, 2, 9.0F)));
  EXPECT_TRUE(refused(PushAll(0, std::numeric_limits<Step>::max(), 9.0F)));
  EXPECT_TRUE(refused(Push(0, 1, {9, 12}, 9.0F)));
  EXPECT_TRUE(refused(Push(0, 1, {12, 17}, 9.0F)));
  EXPECT_TRUE(refused(Push(0, 1, {14, 12}, 9.0F)));
  Values few(3, 9.0F);
  EXPECT_TRUE(refused((*shard_)->Push(0, 1, kRange, Float32View(few))));
  Values six(6, 9.0F);
  compute::TensorView integers = Float32View(six);
  integers.dtype = compute::DType::kInt32;
  EXPECT_TRUE(refused((*shard_)->Push(0, 1, kRange, integers)));
  ASSERT_TRUE(PushAll(0, 1, 1.0F).ok());
  for (const double weight : {std::nan(""), -1.0, 1e-60, 1e300, HUGE_VAL}) {
    EXPECT_TRUE(refused(Finish(0, 1, weight))) << weight;
  }
  EXPECT_TRUE(refused(Pull(0, 0)->status));
  EXPECT_TRUE(refused(Pull(0, 3)->status));
  EXPECT_TRUE(refused(Pull(0, 1, {0, 3})->status));
  EXPECT_TRUE(refused(Pull(7, 1)->status));
  EXPECT_TRUE(Finish(0, 1).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(PushAll(0, 2, 9.0F))) << "step 1 is not applied";
  PushStep(1, 1, 1.0F);
  loop_.Run();
  EXPECT_EQ(Pull(0, 2)->values, Values(6, 2.0F));
}

TEST_F(ShardTest, AStepWithoutWeightChangesNothing) {
  Make(2, 0);
  ASSERT_TRUE(PushAll(0, 1, 1.0F).ok());
  ASSERT_TRUE(PushAll(1, 1, 1.0F).ok());
  ASSERT_TRUE(Finish(0, 1, 0.0).ok());
  ASSERT_TRUE(Finish(1, 1, 0.0).ok());
  loop_.Run();
  EXPECT_EQ(Pull(0, 2)->values, Values(6, 0.0F));
  EXPECT_EQ(Pull(0, 2)->clock, 1);
}

class Failing final : public compute::Optimizer {
 public:
  absl::Status Apply(compute::TensorView, compute::TensorView, double) override {
    return ResourceExhausted("no room for the state");
  }
  std::vector<std::pair<std::string, compute::TensorView>> State() override { return {}; }
};

TEST_F(ShardTest, AnOptimizersErrorReachesEveryReader) {
  HostedShard shard(loop_, {.range = {0, 2}, .worker_count = 1},
                    [] { return std::make_unique<Failing>(); });
  Values gradients(2, 1.0F);
  ASSERT_TRUE(shard->Push(0, 1, {0, 2}, Float32View(gradients)).ok());
  ASSERT_TRUE(shard->FinishStep(0, 1, {1.0, false}).ok());
  absl::Status parked;
  shard->Pull(0, 2, {0, 2}, [&](absl::StatusOr<PullReply> reply) { parked = reply.status(); });
  loop_.Run();
  EXPECT_EQ(parked, ResourceExhausted("update of step 1: no room for the state"));
  EXPECT_EQ(shard->Push(0, 2, {0, 2}, Float32View(gradients)), parked);
}

TEST_F(ShardTest, MakeRefusesWhatMakesNoSense) {
  compute::CpuDevice device({});
  Values values(4);
  compute::TensorView parameters = Float32View(values);
  parameters.device = &device;
  const auto make = [&](const ShardOptions& options) {
    return Shard::Make(loop_, options, CountingFactory(), parameters).status();
  };
  EXPECT_TRUE(make({.range = {0, 4}, .worker_count = 1}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(make({.range = {0, 5}, .worker_count = 1})));
  EXPECT_TRUE(absl::IsInvalidArgument(make({.range = {0, 4}, .worker_count = 0})));
  EXPECT_TRUE(absl::IsInvalidArgument(make({.range = {4, 0}, .worker_count = 1})));
  EXPECT_TRUE(absl::IsInvalidArgument(make({.range = {0, 4}, .worker_count = 1, .bound = {-1}})));
}

TEST_F(ShardTest, GradientsTakeOneRangeAWorkerOfTheDevicesMemory) {
  compute::CpuDevice device({.cap = 10 * 4 * 3});
  auto memory = device.Allocate(10 * 4, compute::MemoryKind::kWeights);
  ASSERT_TRUE(memory.ok());
  const auto make = [&](int workers) {
    return Shard::Make(loop_, {.range = {0, 10}, .worker_count = workers}, CountingFactory(),
                       compute::ViewOf(**memory, compute::DType::kFloat32, {10, 1, 1, 1}))
        .status();
  };
  EXPECT_TRUE(make(2).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(make(3)));
}

TEST_F(ShardTest, AnEmptyRangeKeepsTheClocksAllTheSame) {
  HostedShard shard(loop_, {.range = {5, 5}, .worker_count = 2}, CountingFactory());
  std::optional<Step> clock;
  ASSERT_TRUE(shard->FinishStep(0, 1, {1.0, false}).ok());
  shard->Pull(0, 2, {5, 5}, [&](absl::StatusOr<PullReply> reply) { clock = reply->clock; });
  loop_.Run();
  EXPECT_FALSE(clock.has_value());
  ASSERT_TRUE(shard->FinishStep(1, 1, {1.0, false}).ok());
  loop_.Run();
  EXPECT_EQ(clock, 1);
}

// Chen et al., 2016: a step takes the first N - b gradients and drops the late ones.
TEST_F(ShardTest, AStepWithABackupWorkerDropsTheLateGradientsWhole) {
  shard_.emplace(
      loop_,
      ShardOptions{.range = kRange, .worker_count = 3, .backup_workers = 1, .block_elements = 4},
      CountingFactory());
  ASSERT_TRUE(Push(1, 1, {10, 13}, 100.0F).ok()) << "the late one has begun";
  PushStep(0, 1, 1.0F);
  PushStep(2, 1, 10.0F);
  loop_.Run();
  EXPECT_EQ(Pull(0, 2)->values, Values(6, 11.0F));

  EXPECT_TRUE(absl::IsAlreadyExists(Push(1, 1, {13, 16}, 100.0F)));
  EXPECT_EQ((*shard_)->counters().late_steps, (std::vector<std::int64_t>{0, 0, 0}));
  EXPECT_TRUE(absl::IsAlreadyExists(Finish(1, 1)));
  EXPECT_TRUE(absl::IsAlreadyExists(Finish(1, 1)));
  EXPECT_EQ((*shard_)->counters().late_steps, (std::vector<std::int64_t>{0, 1, 0}))
      << "once, however often it is said";

  // It reads what is newest, and which step is open.
  const auto read = Pull(1, 2);
  EXPECT_EQ(read->values, Values(6, 11.0F));
  EXPECT_EQ(read->clock, 1);
  PushStep(1, 2, 100.0F);
  PushStep(0, 2, 1.0F);
  loop_.Run();
  EXPECT_EQ(Pull(1, 3)->values, Values(6, 112.0F));
  EXPECT_EQ((*shard_)->counters().late_steps, (std::vector<std::int64_t>{0, 1, 0}));
}

// It sleeps through two steps, so that only the one it worked for is a late one.
TEST_F(ShardTest, AWorkerThatMissedStepsGoesOnWithTheOpenOne) {
  shard_.emplace(
      loop_,
      ShardOptions{.range = kRange, .worker_count = 2, .backup_workers = 1, .block_elements = 4},
      CountingFactory());
  for (Step step = 1; step <= 3; ++step) {
    PushStep(0, step, 1.0F);
    loop_.Run();
  }
  EXPECT_TRUE(absl::IsAlreadyExists(PushAll(1, 1, 10.0F)));
  EXPECT_TRUE(absl::IsAlreadyExists(Finish(1, 1)));
  EXPECT_EQ(Pull(1, 2)->clock, 3);
  PushStep(1, 4, 10.0F);
  loop_.Run();
  EXPECT_EQ(Pull(0, 5)->values, Values(6, 13.0F));
  EXPECT_EQ((*shard_)->counters().late_steps, (std::vector<std::int64_t>{0, 1}));
}

}  // namespace
}  // namespace ranklab::ps
