// What can go wrong with a lab, and the one sentence that it ends with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/lab_on_paper.h"

namespace ranklab::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

class TroubleTest : public ConductorBench, public testing::Test {
 protected:
  // A lab of one cell of `count` workers, at work.
  void RunningCell(int count) {
    AddWorkers(count);
    Conduct(LabOf("scale", {{.workers = count}}));
    AllReady();
  }

  void ExpectAllAborted(const std::vector<MemberId>& members) {
    for (const MemberId member : members) {
      EXPECT_EQ(CountOf(v1::CoordinatorMessage::kAbort, member), 1) << "member " << member;
    }
  }
};

TEST_F(TroubleTest, AClosedSessionNamesTheLostOneAndItsStep) {
  RunningCell(4);
  for (const MemberId worker : workers) {
    Beat(worker, 14, "backward");
  }
  CloseSession(workers[2]);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code, 3);
  EXPECT_EQ(VerdictText(),
            "worker 2 was lost in step 14 of scale cell 0: the session's connection closed");
  EXPECT_TRUE(end->dismiss_pool) << "a loss ends every process";
  ExpectAllAborted(workers);
  const v1::RunEvent& ended = events[events.size() - 2];
  ASSERT_TRUE(ended.has_ended());
  EXPECT_EQ(ended.ended().code(), static_cast<int>(absl::StatusCode::kUnavailable));
}

TEST_F(TroubleTest, ALossEndsTheLabAloneWhereThePoolIsKept) {
  AddWorkers(2);
  Conduct(LabOf("scale", {{.workers = 2}}), {.keep_pool = true});
  AllReady();
  CloseSession(workers[1]);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code, 3);
  EXPECT_FALSE(end->dismiss_pool);
  EXPECT_EQ(CountOf(v1::CoordinatorMessage::kAbort, workers[0]), 1);
}

TEST_F(TroubleTest, RowsTellTheStepWhenHeartbeatsAreBehind) {
  RunningCell(2);
  Beat(workers[1], 3, "forward");
  Row(workers[1], 6);
  CloseSession(workers[1]);
  EXPECT_THAT(VerdictText(), HasSubstr("in step 7 of scale cell 0"));
}

TEST_F(TroubleTest, ARefusalOfMemoryOnOneRankIsToldFromOneOnAll) {
  const absl::Status refusal =
      ResourceExhausted("step 1, phase optimizer, the first optimizer step: out of memory");
  RunningCell(3);
  Result(workers[1], refusal);
  Report(workers[0], 1, 1);
  Pass(milliseconds(900), {});
  EXPECT_FALSE(end.has_value()) << "the others may be refused too";
  Pass(milliseconds(200), {});
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(VerdictText(),
            "worker 1 of scale cell 0, step 1, phase optimizer, the first optimizer step: out of "
            "memory; on this rank only");
  EXPECT_EQ(end->exit_code, 1);
}

TEST_F(TroubleTest, ARefusalOfMemoryOnAllRanksNeedsNoWaiting) {
  RunningCell(2);
  Result(workers[1], ResourceExhausted("step 1, phase forward: out of memory"));
  Result(workers[0], ResourceExhausted("step 1, phase forward: out of memory"));
  EXPECT_EQ(VerdictText(),
            "worker 0 of scale cell 0, step 1, phase forward: out of memory; on all ranks alike");
}

TEST_F(TroubleTest, SilenceNamesTheLostOneAfterTheSuspicionTime) {
  RunningCell(3);
  Beat(workers[1], 14, "waiting bucket 3");
  Pass(milliseconds(4900), {workers[1]});
  EXPECT_FALSE(end.has_value());
  Pass(milliseconds(200), {workers[1]});
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(VerdictText(), "worker 1 was lost in step 14 of scale cell 0: no heartbeat for 5.0 s");
}

TEST_F(TroubleTest, ALabMaySetTheSuspicionTime) {
  AddWorkers(2);
  experiment::Lab lab = LabOf("scale", {{.workers = 2}});
  lab.parts[0].cells[0].spec.cluster.suspect_after = milliseconds(800);
  Conduct(std::move(lab));
  AllReady();
  Pass(milliseconds(900), {workers[0]});
  EXPECT_THAT(VerdictText(), HasSubstr("worker 0 was lost"));
}

TEST_F(TroubleTest, ALossWhileGettingReadySaysSo) {
  AddWorkers(2);
  Conduct(LabOf("scale", {{.workers = 2}}));
  Ready(workers[0]);
  CloseSession(workers[1]);
  EXPECT_EQ(end->exit_code, 3);
  EXPECT_EQ(VerdictText(),
            "worker 1 was lost while getting ready for scale cell 0: the session's connection "
            "closed");
}

TEST_F(TroubleTest, ALossDuringACalibrationEndsTheLab) {
  AddWorkers(2);
  Conduct(LabOf("scale", {{.workers = 2, .shaped = true}}));
  AllReady();
  CloseSession(workers[0]);
  EXPECT_EQ(end->exit_code, 3);
  EXPECT_THAT(VerdictText(), HasSubstr("the calibration of scale cell 0"));
}

TEST_F(TroubleTest, AServerIsNamedAsOne) {
  AddWorkers(2);
  AddServers(2);
  Conduct(LabOf("scale", {{.workers = 2, .with_servers = true}}));
  AllReady();
  Beat(servers[1], 5, "serving");
  CloseSession(servers[1]);
  EXPECT_THAT(VerdictText(), HasSubstr("server 1 was lost in step 5"));
}

TEST_F(TroubleTest, AServersStepIsTheWorkersStep) {
  AddWorkers(2);
  AddServers(2);
  Conduct(LabOf("scale", {{.workers = 2, .with_servers = true}}));
  AllReady();
  Beat(workers[0], 6, "forward");
  CloseSession(servers[0]);
  EXPECT_THAT(VerdictText(), HasSubstr("server 0 was lost in step 6 of scale cell 0"));
}

// Members close their wires once all have fetched the final parameters, not all at one instant.
TEST_F(TroubleTest, WiresThatCloseAfterTheLastBarrierAreNoLosses) {
  RunningCell(2);
  Arrive(workers[0], kFetchedBarrier);
  Arrive(workers[1], kFetchedBarrier);
  Report(workers[0], 1, 10);
  Pass(seconds(2));
  EXPECT_FALSE(end.has_value());
  AllDone();
  EXPECT_EQ(end->exit_code, 0);
}

// The victims' connections break before the coordinator sees the dead one's session end.
TEST_F(TroubleTest, VictimsThatReportFirstDoNotBecomeTheCulprit) {
  RunningCell(4);
  Report(workers[1], 2, 14);
  Report(workers[3], 2, 14);
  Report(workers[0], 1, 14);
  Result(workers[1], Unavailable("worker 2: connection reset"));
  Result(workers[3], Unavailable("worker 2: connection reset"));
  Pass(milliseconds(250));
  EXPECT_FALSE(end.has_value());
  CloseSession(workers[2]);
  EXPECT_EQ(VerdictText(),
            "worker 2 was lost in step 14 of scale cell 0: the session's connection closed");
}

TEST_F(TroubleTest, ReportsDecideWhenNobodysSessionEnds) {
  RunningCell(4);
  Report(workers[1], 2, 14);
  Pass(milliseconds(250));
  EXPECT_FALSE(end.has_value());
  Pass(milliseconds(100));
  EXPECT_EQ(VerdictText(),
            "worker 2 was lost in step 14 of scale cell 0: worker 1 reports: connection reset");
  EXPECT_EQ(end->exit_code, 3);
}

// Worker 2 is stopped; worker 1 timed out on it and closed its connections, which worker 0 reports.
TEST_F(TroubleTest, SuspicionDecidesWhileSomeoneIsSilent) {
  RunningCell(3);
  Pass(seconds(2), {workers[2]});
  Result(workers[1], DeadlineExceeded("bucket 3 waits for worker 2"));
  Report(workers[0], 1, 14);
  Pass(seconds(2), {workers[2]});
  EXPECT_FALSE(end.has_value());
  Pass(seconds(2), {workers[2]});
  EXPECT_THAT(VerdictText(), HasSubstr("worker 2 was lost"));
  EXPECT_THAT(VerdictText(), HasSubstr("no heartbeat for 5.0 s"));
}

TEST_F(TroubleTest, ASymptomWithoutACulpritIsToldAfterTheSuspicionTime) {
  RunningCell(2);
  Beat(workers[0], 9, "waiting bucket 3");
  Result(workers[0], DeadlineExceeded("bucket 3 waits for worker 1"));
  Pass(milliseconds(5900));
  EXPECT_FALSE(end.has_value());
  Pass(milliseconds(200));
  EXPECT_EQ(end->exit_code, 3);
  EXPECT_EQ(VerdictText(),
            "worker 0 gave up in step 9 of scale cell 0: bucket 3 waits for worker 1");
}

TEST_F(TroubleTest, AnErrorThatFollowsASymptomIsTakenForItsConsequence) {
  RunningCell(2);
  Result(workers[0], Unavailable("worker 1: connection reset"));
  Result(workers[1], Internal("shard is broken"));
  EXPECT_FALSE(end.has_value());
  CloseSession(workers[1]);
  EXPECT_EQ(end->exit_code, 3);
}

TEST_F(TroubleTest, AMistakeInTheInputIsToldAtOnce) {
  AddWorkers(2);
  Conduct(LabOf("scale", {{.workers = 2}}));
  Ready(workers[1], Unimplemented("nccl needs a GPU"));
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code, 2);
  EXPECT_EQ(VerdictText(), "worker 1, while getting ready for scale cell 0: nccl needs a GPU");
  EXPECT_FALSE(end->dismiss_pool);
  ExpectAllAborted(workers);
}

TEST_F(TroubleTest, ATokenThatIsTooLargeIsRefused) {
  RunningCell(2);
  Arrive(workers[1], "unique id", std::string(kMostTokenBytes + 1, 'x'));
  ASSERT_TRUE(end.has_value());
  EXPECT_THAT(VerdictText(), testing::HasSubstr("worker 1"));
  EXPECT_THAT(VerdictText(), testing::HasSubstr("a token of 1025 bytes; at most 1024"));
}

TEST_F(TroubleTest, AnyOtherErrorOfAMemberFailsTheLab) {
  RunningCell(2);
  Beat(workers[0], 3, "backward");
  Result(workers[0], Internal("gradients disagree"));
  EXPECT_EQ(end->exit_code, 1);
  EXPECT_EQ(VerdictText(), "worker 0, in step 3 of scale cell 0: gradients disagree");
}

TEST_F(TroubleTest, AMemberThatReadAnotherTextIsRefused) {
  AddWorkers(1);
  Conduct(LabOf("scale", {{.workers = 1}}));
  assignments[workers[0]].set_lab_hash("4567");
  Ready(workers[0]);
  EXPECT_EQ(end->exit_code, 1);
  EXPECT_THAT(VerdictText(), HasSubstr("hash 4567, the coordinator's is 0123"));
}

TEST_F(TroubleTest, WhoIsNotReadyInTimeIsNamed) {
  AddWorkers(3);
  Conduct(LabOf("scale", {{.workers = 3}}));
  Ready(workers[0]);
  Beat(workers[1], 0, "loading data");
  Pass(milliseconds(19900));
  EXPECT_FALSE(end.has_value());
  Pass(milliseconds(200));
  EXPECT_EQ(end->exit_code, 3);
  EXPECT_EQ(VerdictText(),
            "scale cell 0 did not get ready within 20.0 s; it waits for worker 1 (step 0, loading "
            "data), worker 2 (step 0, phase unknown)");
}

TEST_F(TroubleTest, ABarrierNamesWhomItWaitsFor) {
  RunningCell(3);
  Arrive(workers[0], "trained");
  Arrive(workers[2], "trained");
  Beat(workers[1], 8, "backward");
  Pass(milliseconds(29900));
  EXPECT_FALSE(end.has_value());
  Pass(milliseconds(200));
  EXPECT_EQ(VerdictText(),
            "barrier \"trained\" of scale cell 0 waited 30.0 s for worker 1 (step 8, backward)");
  EXPECT_EQ(end->exit_code, 3);
}

// It says from the start that it waits for the last barrier; a slow run has the cell's whole time.
TEST_F(TroubleTest, AServerThatWaitsFromTheStartHurriesNobody) {
  AddWorkers(2);
  AddServers(2);
  Conduct(LabOf("scale", {{.workers = 2, .with_servers = true}}));
  AllReady();
  Arrive(servers[0], kFetchedBarrier);
  Pass(milliseconds(50000));
  Arrive(workers[0], kFetchedBarrier);
  Pass(milliseconds(5000));
  EXPECT_FALSE(end.has_value()) << VerdictText();
  Arrive(workers[1], kFetchedBarrier);
  AllDone();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code, 0) << VerdictText();
}

TEST_F(TroubleTest, ACellThatDoesNotEndNamesWhomItWaitsFor) {
  RunningCell(2);
  Result(workers[0]);
  Beat(workers[1], 8, "forward");
  Pass(milliseconds(60100));
  EXPECT_EQ(VerdictText(),
            "scale cell 0 did not end within 60.0 s; it waits for worker 1 (step 8, forward)");
}

TEST_F(TroubleTest, AnIdleMemberThatIsNotNeededMayGo) {
  AddWorkers(3);
  Conduct(LabOf("scale", {{.workers = 2}}));
  AllReady();
  CloseSession(workers[2]);
  EXPECT_FALSE(end.has_value());
  ASSERT_TRUE(events.back().has_membership());
  EXPECT_THAT(events.back().membership().text(), HasSubstr("worker member 3 at h:1 was lost"));
  AllDone();
  EXPECT_EQ(end->exit_code, 0);
}

TEST_F(TroubleTest, AnIdleMemberThatALaterCellNeedsEndsTheLab) {
  AddWorkers(2);
  Conduct(LabOf("scale", {{.workers = 1}, {.workers = 2}}));
  AllReady();
  CloseSession(workers[1]);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code, 3);
  EXPECT_EQ(VerdictText(),
            "worker member 2 at h:1 was lost while it was idle: the session's connection closed; "
            "what is left is too few: the lab needs 2 workers, 1 joined");
  EXPECT_TRUE(end->dismiss_pool);
  ExpectAllAborted({workers[0]});
}

TEST_F(TroubleTest, ALossBeforeTheBeginIsOnlyLogged) {
  AddWorkers(1);
  Conduct(LabOf("scale", {{.workers = 2}}));
  CloseSession(workers[0]);
  EXPECT_FALSE(end.has_value());
  AddWorkers(2);
  AllReady();
  AllDone();
  EXPECT_EQ(end->exit_code, 0);
}

TEST_F(TroubleTest, CancellingAbortsAndReturnsTheMembersToThePool) {
  RunningCell(2);
  Carry(conductor->Cancel("cancelled by the client", now));
  EXPECT_EQ(end->exit_code, 3);
  EXPECT_EQ(VerdictText(), "cancelled by the client");
  EXPECT_FALSE(end->dismiss_pool);
  ExpectAllAborted(workers);
  Carry(conductor->Cancel("again", now));  // Carry complains of anything after the end
}

TEST_F(TroubleTest, CancellingDismissesThePoolWhereTheLabDoes) {
  AddWorkers(1);
  Conduct(LabOf("scale", {{.workers = 1}}), {.dismiss_pool = true});
  Carry(conductor->Cancel("cancelled by the client", now));
  EXPECT_TRUE(end->dismiss_pool);
}

TEST_F(TroubleTest, ReportsOfStrangersAreIgnored) {
  RunningCell(2);
  Report(workers[0], 7, 3);  // no such rank
  Report(workers[0], 0, 3);  // itself
  Pass(seconds(2));
  EXPECT_FALSE(end.has_value());
}

}  // namespace
}  // namespace ranklab::coordinator
