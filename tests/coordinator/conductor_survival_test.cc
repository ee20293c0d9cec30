// on_loss: continue. Who is told what when a member is lost, and when a run ends after all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/lab_on_paper.h"

namespace ranklab::coordinator {
namespace {

using testing::HasSubstr;

class SurvivalTest : public ConductorBench, public testing::Test {
 protected:
  // A cell of two workers and so many servers, at work.
  void RunningCell(int server_count, const std::string& on_loss = "continue") {
    AddWorkers(2);
    AddServers(server_count);
    experiment::Lab lab = LabOf("train", {{.workers = 2, .with_servers = true}});
    lab.parts.front().cells.front().spec.cluster.servers = server_count;
    lab.parts.front().cells.front().spec.cluster.on_loss = on_loss;
    Conduct(std::move(lab));
    AllReady();
    for (const MemberId worker : workers) {
      Beat(worker, 7, "backward");
    }
  }

  const v1::MemberGone* ToldOf(MemberId member) const {
    for (const SendToMember& message : sent) {
      if (message.member == member && message.message.has_gone()) {
        return &message.message.gone();
      }
    }
    return nullptr;
  }
};

TEST_F(SurvivalTest, ALostServersShardGoesToTheNextOneAndEverybodyIsTold) {
  RunningCell(3);
  CloseSession(servers[2]);
  ASSERT_FALSE(end.has_value()) << VerdictText();
  for (const MemberId member : {workers[0], workers[1], servers[0], servers[1]}) {
    const v1::MemberGone* told = ToldOf(member);
    ASSERT_NE(told, nullptr) << "member " << member;
    EXPECT_EQ(told->role(), v1::ROLE_SERVER);
    EXPECT_EQ(told->rank(), 2);
    EXPECT_EQ(told->heir(), 0);
  }
  EXPECT_EQ(ToldOf(servers[2]), nullptr);
  for (const MemberId member : {workers[0], workers[1], servers[0], servers[1]}) {
    Result(member);
  }
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code, 0) << VerdictText();
  const v1::RunEvent& ended = events[events.size() - 2];
  ASSERT_EQ(ended.ended().losses_size(), 1);
  EXPECT_EQ(ended.ended().losses(0).step(), 7);
  EXPECT_EQ(ended.ended().losses(0).heir(), 0);
}

// Peers' reports come before and after the session's end: both are about what is settled.
TEST_F(SurvivalTest, ReportsOfTheLostOneEndNothing) {
  RunningCell(2);
  const auto report = [this](MemberId reporter) {
    v1::MemberMessage message;
    message.mutable_peer_lost()->set_generation(GenerationOf(reporter));
    message.mutable_peer_lost()->set_role(v1::ROLE_SERVER);
    message.mutable_peer_lost()->set_rank(1);
    message.mutable_peer_lost()->set_what("connection reset");
    Say(reporter, message);
  };
  report(workers[0]);
  CloseSession(servers[1]);
  report(workers[1]);
  Pass(std::chrono::seconds(3));
  EXPECT_FALSE(end.has_value()) << VerdictText();
}

TEST_F(SurvivalTest, ALostWorkerIsNotWaitedForAtBarriersOfBeforeAndAfter) {
  RunningCell(1);
  Arrive(servers[0], kFetchedBarrier);
  Arrive(workers[0], kTrainedBarrier);
  EXPECT_EQ(CountOf(v1::CoordinatorMessage::kRelease, workers[0]), 0);
  CloseSession(workers[1]);
  ASSERT_FALSE(end.has_value()) << VerdictText();
  EXPECT_EQ(CountOf(v1::CoordinatorMessage::kRelease, workers[0]), 1);
  const v1::MemberGone* told = ToldOf(servers[0]);
  ASSERT_NE(told, nullptr);
  EXPECT_EQ(told->role(), v1::ROLE_WORKER);
  EXPECT_FALSE(told->has_heir());
  Arrive(workers[0], kFetchedBarrier);
  EXPECT_EQ(CountOf(v1::CoordinatorMessage::kRelease, workers[0]), 2);
  EXPECT_EQ(CountOf(v1::CoordinatorMessage::kRelease, servers[0]), 1);
  Result(workers[0]);
  Result(servers[0]);
  EXPECT_EQ(end->exit_code, 0) << VerdictText();
}

TEST_F(SurvivalTest, WhatHasNoReplicaEndsTheRunWithWhatIsLost) {
  RunningCell(1);
  CloseSession(servers[0]);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code, 3);
  EXPECT_EQ(
      VerdictText(),
      "server 0 was lost in step 7 of train cell 0: the session's connection closed; its part "
      "of the parameters is lost since the run began: a single server has no replica, and "
      "there is no snapshot");
}

TEST_F(SurvivalTest, AHeirThatIsLostTakesTheShardThatItInheritedWithIt) {
  RunningCell(3);
  CloseSession(servers[0]);
  ASSERT_FALSE(end.has_value());
  CloseSession(servers[1]);
  EXPECT_EQ(end->exit_code, 3);
  EXPECT_THAT(VerdictText(), HasSubstr("the part of the parameters that it had taken over from "
                                       "server 0 is lost"));
}

TEST_F(SurvivalTest, AServerWhoseHeirIsLostHasNoReplicaAnyMore) {
  RunningCell(3);
  CloseSession(servers[1]);
  ASSERT_FALSE(end.has_value());
  CloseSession(servers[0]);
  EXPECT_EQ(end->exit_code, 3);
  EXPECT_THAT(VerdictText(), HasSubstr("with the replica that server 1 had"));
}

TEST_F(SurvivalTest, TheLastWorkerEndsTheRun) {
  RunningCell(2);
  CloseSession(workers[0]);
  ASSERT_FALSE(end.has_value());
  CloseSession(workers[1]);
  EXPECT_EQ(end->exit_code, 3);
  EXPECT_THAT(VerdictText(), HasSubstr("no worker is left"));
}

TEST_F(SurvivalTest, NobodyGoesOnWhereTheLabStops) {
  RunningCell(2, "stop");
  CloseSession(servers[1]);
  EXPECT_EQ(VerdictText(),
            "server 1 was lost in step 7 of train cell 0: the session's connection closed");
}

}  // namespace
}  // namespace ranklab::coordinator
