// One lab at a time, clients that do not behave, and who ends with which code.
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/control_plane_on_paper.h"

namespace ranklab::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(ControlPlaneTest, ALabWithAMistakeStartsNothing) {
  Session& member = Join();
  Client& client = NewClient();
  v1::RunLabRequest request = LabRequest();
  request.set_lab_text("name: small\nmodle: {}\n");
  plane.RunLab(request, client);
  ASSERT_THAT(client.sent, SizeIs(1));
  EXPECT_EQ(client.sent[0].verdict().exit_code(), 2);
  EXPECT_THAT(client.sent[0].verdict().text(), HasSubstr("labs/small.yaml:2"));
  EXPECT_TRUE(client.closed->ok());
  EXPECT_THAT(member.sent, SizeIs(1)) << "only Joined";
  Pass(seconds(2));
  EXPECT_THAT(finished, IsEmpty()) << "the pool waits for the next lab";
}

TEST_F(ControlPlaneTest, OneLabAtATime) {
  Client& first = NewClient();
  Client& second = NewClient();
  plane.RunLab(LabRequest(), first);
  plane.RunLab(LabRequest(), second);
  EXPECT_EQ(second.closed->code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(MessageOf(*second.closed), "a lab is running: small");
  Pass(milliseconds(100));
  EXPECT_FALSE(first.closed.has_value());
  EXPECT_EQ(plane.Status().lab(), "small");
  Pass(seconds(2));
  EXPECT_EQ(first.sent.back().verdict().exit_code(), 3);
  EXPECT_EQ(plane.Status().lab(), "");
  EXPECT_THAT(plane.Status().verdict(), HasSubstr("needs 2 workers, 0 joined"));
}

TEST_F(ControlPlaneTest, AClientOfAnotherBuildIsRefused) {
  Client& client = NewClient();
  v1::RunLabRequest request = LabRequest();
  request.set_build("other");
  plane.RunLab(request, client);
  EXPECT_EQ(client.closed->code(), absl::StatusCode::kFailedPrecondition);
  Pass(milliseconds(100));
}

TEST_F(ControlPlaneTest, AClientThatGoesAwayCancelsItsLabAndTheNextMayCome) {
  Session& a = Join();
  Session& b = Join();
  Client& first = NewClient();
  plane.RunLab(LabRequest(), first);
  ASSERT_TRUE(a.sent.back().has_assignment());
  first.GoAway();
  EXPECT_TRUE(a.sent.back().has_abort());
  EXPECT_EQ(a.sent.back().abort().reason(), "cancelled by the client");
  EXPECT_FALSE(a.closed.has_value());
  Client& second = NewClient();
  plane.RunLab(LabRequest(), second);
  EXPECT_TRUE(b.sent.back().has_assignment());
  second.GoAway();
}

TEST_F(ControlPlaneTest, ALossDismissesEveryoneAndFinishesTheProcess) {
  Session& a = Join();
  Session& b = Join();
  Client& client = NewClient();
  plane.RunLab(LabRequest(), client);
  a.GoAway();
  EXPECT_EQ(client.sent.back().verdict().exit_code(), 3);
  EXPECT_THAT(client.sent.back().verdict().text(), HasSubstr("worker 0 was lost"));
  ASSERT_TRUE(b.sent.back().has_dismiss());
  EXPECT_EQ(b.sent.back().dismiss().exit_code(), 3);
  EXPECT_TRUE(b.closed->ok());
  EXPECT_THAT(finished, IsEmpty()) << "streams end first";
  Pass(milliseconds(200));
  EXPECT_THAT(finished, testing::ElementsAre(3));
  Session& late = Open();
  EXPECT_EQ(late.closed->code(), absl::StatusCode::kUnavailable);
  Pass(milliseconds(100));
}

TEST_F(ControlPlaneTest, AClientThatDoesNotReadIsDroppedByNameAndThePoolStays) {
  Join();
  Session& b = Join();
  Client& client = NewClient();
  client.unread = 65 << 20;
  plane.RunLab(LabRequest(), client);
  ASSERT_TRUE(client.closed.has_value());
  EXPECT_EQ(client.closed->code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(MessageOf(*client.closed), HasSubstr("10.0.0.3:41234 does not read its events: 65"));
  Pass(milliseconds(100));
  EXPECT_TRUE(b.sent.back().has_abort());
  EXPECT_EQ(plane.Status().lab(), "");
  EXPECT_THAT(plane.Status().verdict(), HasSubstr("does not read"));
  Client& next = NewClient();
  plane.RunLab(LabRequest(), next);
  EXPECT_TRUE(b.sent.back().has_assignment());
  next.GoAway();
}

class HeldUpClientTest : public ControlPlaneTest {
 protected:
  // Its lab has come to its end, and it has 10 MiB of events to read.
  Client& LabOfAHeldUpClient() {
    Join();
    Join();
    Client& client = NewClient();
    client.held_up = true;
    client.unread = 10 << 20;
    plane.RunLab(LabRequest(/*dismiss_pool=*/true), client);
    Work();
    return client;
  }
};

TEST_F(HeldUpClientTest, GetsItsVerdictBeforeTheProcessEnds) {
  Client& client = LabOfAHeldUpClient();
  ASSERT_TRUE(client.sent.back().has_verdict());
  Pass(seconds(25));
  client.unread = 5 << 20;  // slow, but it reads
  Pass(seconds(25));
  EXPECT_THAT(finished, IsEmpty());
  client.GoAway();
  Pass(milliseconds(100));
  EXPECT_THAT(finished, testing::ElementsAre(0));
}

TEST_F(HeldUpClientTest, IsGivenUpWhenItTakesNothing) {
  Client& client = LabOfAHeldUpClient();
  Pass(seconds(31));
  EXPECT_THAT(finished, testing::ElementsAre(0));
  client.GoAway();
}

TEST_F(ControlPlaneTest, WhereNobodyEndsWithTheLabNobodyWaitsForItsClient) {
  Join();
  Join();
  for (int lab = 0; lab < 2; ++lab) {
    Client& client = NewClient();
    v1::RunLabRequest request = LabRequest();
    request.set_concludes(true);
    plane.RunLab(request, client);
    Work();
    EXPECT_EQ(client.sent.back().verdict().exit_code(), 0) << client.sent.back().DebugString();
    EXPECT_TRUE(client.closed.has_value());
  }
  EXPECT_TRUE(plane.Conclude(Conclusion(1)).ok());
  EXPECT_EQ(plane.Status().verdict(), "what the client says");
  EXPECT_EQ(plane.Conclude(Conclusion(4)).code(), absl::StatusCode::kInvalidArgument);
  Pass(seconds(40));
  EXPECT_THAT(finished, IsEmpty());
}

TEST_F(ControlPlaneTest, AMemberWithOnceEndsWithWhatTheClientSaysAndTheOthersStay) {
  Session& stays = Join();
  Session& once = Join(/*once=*/true);
  Client& client = NewClient();
  v1::RunLabRequest request = LabRequest();
  request.set_concludes(true);
  plane.RunLab(request, client);
  Work();
  EXPECT_FALSE(once.closed.has_value()) << "the client judges";
  Client& early = NewClient();
  plane.RunLab(LabRequest(), early);
  EXPECT_EQ(early.closed->code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(plane.Conclude(Conclusion(1)).ok());
  ASSERT_TRUE(once.sent.back().has_dismiss());
  EXPECT_EQ(once.sent.back().dismiss().exit_code(), 1);
  EXPECT_FALSE(stays.closed.has_value());
  Pass(seconds(2));
  EXPECT_THAT(finished, IsEmpty());
}

class OnceTest : public ControlPlaneTest {
 protected:
  OnceTest() : ControlPlaneTest(/*once=*/true) {}

  void RunToTheVerdict(bool concludes) {
    Join();
    Join();
    v1::RunLabRequest request = LabRequest();
    request.set_concludes(concludes);
    plane.RunLab(request, NewClient());
    Work();
    ASSERT_EQ(clients.back()->sent.back().verdict().exit_code(), 0);
  }
  void ExpectTheEnd(int exit_code) {
    for (const auto& session : sessions) {
      ASSERT_TRUE(session->sent.back().has_dismiss());
      EXPECT_EQ(session->sent.back().dismiss().exit_code(), exit_code);
    }
    Pass(milliseconds(100));
    EXPECT_THAT(finished, testing::ElementsAre(exit_code));
  }
};

TEST_F(OnceTest, AFailedExpectationOfTheClientIsTheExitCodeOfAll) {
  RunToTheVerdict(/*concludes=*/true);
  Pass(seconds(4));
  EXPECT_THAT(finished, IsEmpty()) << "the client writes its report";
  EXPECT_TRUE(plane.Conclude(Conclusion(1)).ok());
  ExpectTheEnd(1);
}

TEST_F(OnceTest, AClientThatNeverConcludesIsATimeOut) {
  RunToTheVerdict(/*concludes=*/true);
  // Long silent itself, the members would be lost; here they beat.
  for (int second = 0; second < 31; ++second) {
    for (const auto& session : sessions) {
      v1::MemberMessage beat;
      beat.mutable_heartbeat();
      plane.Received(*session, beat);
    }
    Pass(seconds(1));
  }
  ExpectTheEnd(3);
}

TEST_F(OnceTest, AClientThatPromisedNothingIsNotWaitedFor) {
  RunToTheVerdict(/*concludes=*/false);
  ExpectTheEnd(0);
}

TEST_F(ControlPlaneTest, InjectingNeedsARunningLab) {
  v1::InjectRequest request;
  request.set_reset(true);
  EXPECT_EQ(plane.Inject(request).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace ranklab::coordinator
