// Workers that are lost, and workers that leave.
#include <gtest/gtest.h>

#include "tests/ps/shard_fixture.h"

namespace ranklab::ps {
namespace {

TEST_F(ShardTest, ALostWorkersUnfinishedStepIsTakenOutWhole) {
  for (const Order order : {Order::kArrival, Order::kRank}) {
    Make(3, 0, order);
    PushStep(2, 1, 100.0F);
    ASSERT_TRUE(Push(0, 1, {10, 13}, 1.0F).ok());
    const auto lost = Pull(0, 1, {10, 11});
    ASSERT_TRUE(lost->status.ok());
    PushStep(1, 1, 10.0F);
    const auto waiting = Pull(1, 2);
    loop_.Run();
    EXPECT_EQ(waiting->runs, 0);
    (*shard_)->Remove(0);
    loop_.Run();
    EXPECT_EQ(waiting->values, Values(6, 110.0F));
    EXPECT_EQ(waiting->clock, 1);
    EXPECT_TRUE(absl::IsFailedPrecondition(PushAll(0, 1, 1.0F)));
    EXPECT_TRUE(absl::IsAborted(Pull(0, 1)->status));
  }
}

TEST_F(ShardTest, WhatALostWorkerHasEndedStays) {
  for (const Order order : {Order::kArrival, Order::kRank}) {
    Make(2, 0, order);
    PushStep(0, 1, 1.0F);
    const auto dropped = Pull(0, 2);
    (*shard_)->Remove(0);
    (*shard_)->Remove(0);
    EXPECT_TRUE(absl::IsAborted(dropped->status));
    EXPECT_EQ(dropped->runs, 1);
    PushStep(1, 1, 10.0F);
    loop_.Run();
    EXPECT_EQ(Pull(1, 2)->values, Values(6, 11.0F));
    PushStep(1, 2, 10.0F);
    loop_.Run();
    EXPECT_EQ(Pull(1, 3)->values, Values(6, 21.0F));
  }
}

// The loss opens the gate while worker 1's second update is half done.
TEST_F(ShardTest, ALossInTheMiddleOfAnUpdateOpensTheGateAfterIt) {
  Make(3, 1);
  PushStep(0, 1, 1.0F);
  PushStep(1, 1, 10.0F);
  loop_.Run();
  PushStep(0, 2, 1.0F);
  loop_.Run();
  const auto waiting = Pull(0, 3);  // for worker 2
  PushStep(1, 2, 10.0F);
  ASSERT_TRUE(loop_.RunOne());  // the first of two blocks
  (*shard_)->Remove(2);
  EXPECT_EQ(waiting->runs, 0);
  loop_.Run();
  EXPECT_EQ(waiting->values, Values(6, 22.0F));
}

TEST_F(ShardTest, AWorkerThatLeavesIsNotWaitedForAndReadsTheFinalParameters) {
  Make(2, 1);
  PushStep(0, 1, 1.0F);
  loop_.Run();
  EXPECT_TRUE(Push(1, 1, {10, 12}, 5.0F).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition((*shard_)->Leave(1))) << "in the middle of a step";
  EXPECT_TRUE(Push(1, 1, {12, 16}, 5.0F).ok());
  EXPECT_TRUE(Finish(1, 1).ok());
  EXPECT_TRUE((*shard_)->Leave(1).ok());
  EXPECT_TRUE(absl::IsAlreadyExists((*shard_)->Leave(1)));
  loop_.Run();
  for (Step step = 2; step <= 5; ++step) {
    ASSERT_EQ(Pull(0, step)->runs, 1) << step;
    PushStep(0, step, 1.0F);
    loop_.Run();
  }
  EXPECT_EQ(Pull(1, 1)->values, Values(6, 10.0F));
  EXPECT_TRUE(absl::IsFailedPrecondition(PushAll(1, 2, 1.0F)));
}

}  // namespace
}  // namespace ranklab::ps
