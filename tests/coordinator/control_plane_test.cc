// Sessions that break the rules, fall silent, or are shut down.
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

TEST_F(ControlPlaneTest, ASessionBeginsWithAJoinRequest) {
  Session& session = Open();
  v1::MemberMessage message;
  message.mutable_heartbeat()->set_step(3);
  plane.Received(session, message);
  ASSERT_TRUE(session.closed.has_value());
  EXPECT_EQ(session.closed->code(), absl::StatusCode::kInvalidArgument);
  plane.Received(session, JoinMessage());  // too late
  EXPECT_THAT(session.sent, IsEmpty());
  EXPECT_EQ(plane.Status().members_size(), 0);
  Pass(seconds(1));
}

TEST_F(ControlPlaneTest, AnEmptyMessageIsNoJoinRequest) {
  Session& session = Open();
  plane.Received(session, v1::MemberMessage());
  EXPECT_EQ(session.closed->code(), absl::StatusCode::kInvalidArgument);
  Pass(seconds(1));
}

TEST_F(ControlPlaneTest, ASecondJoinRequestEndsTheSession) {
  Session& session = Join();
  plane.Received(session, JoinMessage());
  EXPECT_EQ(session.closed->code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(plane.Status().members_size(), 0);
  Pass(seconds(1));
}

TEST_F(ControlPlaneTest, ASessionThatNeverJoinsIsEnded) {
  Session& session = Open();
  Pass(milliseconds(9900));
  EXPECT_FALSE(session.closed.has_value());
  Pass(milliseconds(200));
  EXPECT_EQ(session.closed->code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(ControlPlaneTest, ARefusedMemberLearnsWhy) {
  Session& session = Open();
  plane.Received(session, JoinMessage("other"));
  EXPECT_EQ(session.closed->code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(*session.closed), HasSubstr("\"other\""));
  Pass(seconds(1));
}

TEST_F(ControlPlaneTest, ASilentMemberLosesItsSession) {
  Session& session = Join();
  Pass(milliseconds(5100));
  ASSERT_TRUE(session.closed.has_value());
  EXPECT_THAT(MessageOf(*session.closed), HasSubstr("no heartbeat for 5.0 s"));
  EXPECT_EQ(plane.Status().members_size(), 0);
}

TEST_F(ControlPlaneTest, ShutdownEndsEverySessionAndTheLab) {
  Session& a = Join();
  Session& b = Join();
  Client& client = NewClient();
  plane.RunLab(LabRequest(), client);
  plane.Shutdown(0, "interrupted");
  EXPECT_EQ(client.sent.back().verdict().exit_code(), 3);
  EXPECT_THAT(client.sent.back().verdict().text(), HasSubstr("interrupted"));
  EXPECT_TRUE(a.sent.back().has_dismiss());
  EXPECT_TRUE(b.sent.back().has_dismiss());
  EXPECT_TRUE(loop.Run(1000)) << "nothing ticks on";
}

}  // namespace
}  // namespace ranklab::coordinator
