#include "coordinator/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/status.h"

namespace ranklab::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Hosts name the members; the ports say nothing here.
JoinRequest WorkerAt(const std::string& host, std::optional<Rank> wanted_rank = {}) {
  return {.role = Role::kWorker,
          .contact = {.host = host, .grpc_port = 1, .tcp_port = 2},
          .incarnation = std::hash<std::string>{}(host),
          .wanted_rank = wanted_rank,
          .build = "ranklab 1"};
}

JoinRequest ServerAt(const std::string& host) {
  JoinRequest request = WorkerAt(host);
  request.role = Role::kServer;
  return request;
}

std::vector<std::string> HostsOf(const std::vector<Member>& members) {
  std::vector<std::string> hosts;
  for (const Member& member : members) {
    hosts.push_back(member.contact.host);
  }
  return hosts;
}

class MembershipTest : public testing::Test {
 protected:
  MemberId Join(const JoinRequest& request, Nanos now = {}) {
    const absl::StatusOr<MemberId> joined = membership.Join(request, now);
    EXPECT_TRUE(joined.ok()) << joined.status();
    return joined.value_or(0);
  }

  Membership membership{{.build = "ranklab 1", .suspect_after = seconds(5)}};
};

TEST_F(MembershipTest, RanksFollowTheOrderOfJoiningWithinARole) {
  Join(WorkerAt("a"));
  Join(ServerAt("s"));
  Join(WorkerAt("b"));
  Join(WorkerAt("c"));
  const auto generation = membership.Form(2, 1);
  ASSERT_TRUE(generation.ok()) << generation.status();
  EXPECT_THAT(HostsOf(generation->workers), ElementsAre("a", "b"));
  EXPECT_THAT(HostsOf(generation->servers), ElementsAre("s"));
  EXPECT_EQ(generation->workers[1].endpoint, (Endpoint{Role::kWorker, 1}));
  EXPECT_EQ(generation->servers[0].endpoint, (Endpoint{Role::kServer, 0}));
}

TEST_F(MembershipTest, WantedRanksComeFirstAndTheOthersFillTheGaps) {
  Join(WorkerAt("first"));
  Join(WorkerAt("wants2", 2));
  Join(WorkerAt("wants0", 0));
  const auto generation = membership.Form(3, 0);
  ASSERT_TRUE(generation.ok()) << generation.status();
  EXPECT_THAT(HostsOf(generation->workers), ElementsAre("wants0", "first", "wants2"));
}

JoinRequest On(const std::string& loopback, JoinRequest request) {
  request.loopback = loopback;
  request.incarnation = 0;
  return request;
}

TEST_F(MembershipTest, LoopbackIsNoAddressForAnotherHost) {
  Join(On("one", WorkerAt("127.0.0.1")));
  Join(On("one", WorkerAt("localhost")));
  EXPECT_TRUE(membership.Form(2, 0).ok()) << "both are on one host";
  Join(On("two", ServerAt("10.0.0.2")));
  const auto mixed = membership.Form(2, 1);
  ASSERT_FALSE(mixed.ok());
  EXPECT_EQ(mixed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(mixed.status()), testing::AllOf(HasSubstr("worker member 1 at 127.0.0.1:1"),
                                                        HasSubstr("server member 3 at 10.0.0.2:1"),
                                                        HasSubstr("--advertise HOST")));
  EXPECT_EQ(membership.Form(1, 0)->number, 2U) << "a refusal is no generation";
}

TEST_F(MembershipTest, AnAddressOthersCanReachIsGoodAnywhere) {
  Join(On("one", WorkerAt("10.0.0.1")));
  Join(On("two", WorkerAt("node2")));
  Join(On("", ServerAt("127.0.0.1")));  // does not say where it is
  EXPECT_TRUE(membership.Form(2, 1).ok());
}

TEST_F(MembershipTest, ARankThatTheGenerationIsTooSmallForCountsAsNoWish) {
  Join(WorkerAt("wants3", 3));
  Join(WorkerAt("any"));
  EXPECT_THAT(HostsOf(membership.Form(1, 0)->workers), ElementsAre("any"));
  EXPECT_THAT(HostsOf(membership.Form(2, 0)->workers), ElementsAre("any", "wants3"));
}

TEST_F(MembershipTest, ATakenRankNamesWhoHasIt) {
  Join(WorkerAt("a", 2));
  const auto second = membership.Join(WorkerAt("b", 2), {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(MessageOf(second.status()),
            "rank 2 is taken by worker member 1 at a:1; worker at b:1 wants it too");
  Join(WorkerAt("c", 1));
  JoinRequest server = ServerAt("s");
  server.wanted_rank = 2;  // ranks count within a role
  Join(server);
}

TEST_F(MembershipTest, ARankIsFreeAgainWhenItsMemberIsLost) {
  membership.ReportLost(Join(WorkerAt("a", 2)), {.what = "gone"});
  Join(WorkerAt("b", 2));
}

TEST_F(MembershipTest, AnotherBuildIsRefusedAndBothAreNamed) {
  JoinRequest other = WorkerAt("a");
  other.build = "ranklab 0";
  const auto refused = membership.Join(other, {});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(refused.status()), HasSubstr("\"ranklab 0\""));
  EXPECT_THAT(MessageOf(refused.status()), HasSubstr("\"ranklab 1\""));
  EXPECT_THAT(membership.pool(), IsEmpty());
}

TEST_F(MembershipTest, OneProcessJoinsOnceAndARestartedOneIsAnotherMember) {
  const MemberId first = Join(WorkerAt("a"));
  EXPECT_EQ(membership.Join(WorkerAt("a"), {}).status().code(), absl::StatusCode::kAlreadyExists);
  JoinRequest restarted = WorkerAt("a");
  restarted.incarnation += 1;
  EXPECT_NE(Join(restarted), first);
}

TEST_F(MembershipTest, ANegativeRankIsInvalid) {
  EXPECT_EQ(membership.Join(WorkerAt("a", -1), {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(MembershipTest, TooFewMembersAreCounted) {
  Join(WorkerAt("a"));
  Join(WorkerAt("b"));
  const auto generation = membership.Form(4, 0);
  EXPECT_EQ(generation.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(MessageOf(generation.status()), "needs 4 workers, 2 joined");
  EXPECT_EQ(MessageOf(membership.Form(1, 2).status()),
            "needs 1 worker and 2 servers; 2 workers and 0 servers joined");
}

TEST_F(MembershipTest, EveryGenerationHasItsOwnNumberAndAFailedOneUsesNone) {
  Join(WorkerAt("a"));
  const std::uint32_t first = membership.Form(1, 0)->number;
  EXPECT_FALSE(membership.Form(2, 0).ok());
  EXPECT_EQ(membership.Form(1, 0)->number, first + 1);
}

TEST_F(MembershipTest, SilenceIsALossAfterTheSuspicionTimeAndNotBefore) {
  const MemberId silent = Join(WorkerAt("a"));
  const MemberId lively = Join(WorkerAt("b"));
  for (Nanos now{}; now < seconds(5); now += milliseconds(200)) {
    membership.Beat(lively, {.generation = 1, .step = 7, .phase = "forward"}, now);
    EXPECT_THAT(membership.Tick(now), IsEmpty()) << now.count();
  }
  const std::vector<Loss> losses = membership.Tick(seconds(5));
  ASSERT_THAT(losses, SizeIs(1));
  EXPECT_EQ(losses[0].member.id, silent);
  EXPECT_EQ(losses[0].evidence.what, "no heartbeat for 5.0 s");
  EXPECT_EQ(losses[0].evidence.reporter, 0U);
  EXPECT_EQ(membership.Find(silent), nullptr);
  EXPECT_NE(membership.Find(lively), nullptr);
  EXPECT_THAT(membership.Tick(seconds(5)), IsEmpty()) << "a loss is announced once";
}

TEST_F(MembershipTest, TheSuspicionTimeMayBeSet) {
  Join(WorkerAt("a"));
  membership.SetSuspectAfter(milliseconds(700));
  EXPECT_THAT(membership.Tick(milliseconds(600)), IsEmpty());
  EXPECT_THAT(membership.Tick(milliseconds(700)), SizeIs(1));
}

TEST_F(MembershipTest, TheCoordinatorsOwnStandstillBlamesNobody) {
  const MemberId member = Join(WorkerAt("a"));
  EXPECT_THAT(membership.Tick(milliseconds(100)), IsEmpty());
  // Stopped for a minute; the heartbeats of that time still wait in the sockets.
  EXPECT_THAT(membership.Tick(seconds(60)), IsEmpty());
  membership.Beat(member, {}, seconds(60));
  for (Nanos now = seconds(60); now < seconds(65); now += milliseconds(100)) {
    EXPECT_THAT(membership.Tick(now), IsEmpty());
  }
  EXPECT_THAT(membership.Tick(seconds(65)), SizeIs(1)) << "but silence after it counts";
}

TEST_F(MembershipTest, TheFirstEvidenceOfALossIsKept) {
  const MemberId member = Join(WorkerAt("a"));
  membership.Beat(member, {.step = 14, .phase = "backward"}, seconds(1));
  membership.ReportLost(member, {.reporter = 0, .what = "the session's connection closed"});
  membership.ReportLost(member, {.reporter = 9, .what = "connection reset"});
  const std::vector<Loss> losses = membership.Tick(seconds(1));
  ASSERT_THAT(losses, SizeIs(1));
  EXPECT_EQ(losses[0].evidence.what, "the session's connection closed");
  EXPECT_EQ(losses[0].member.heartbeat.step, 14);
}

TEST_F(MembershipTest, LeavingIsNoLoss) {
  const MemberId member = Join(WorkerAt("a"));
  membership.Leave(member);
  membership.ReportLost(member, {.what = "the session's connection closed"});
  EXPECT_THAT(membership.Tick(seconds(60)), IsEmpty());
  EXPECT_EQ(membership.CountOf(Role::kWorker), 0);
}

TEST_F(MembershipTest, ALateHeartbeatOfALostMemberIsIgnored) {
  const MemberId member = Join(WorkerAt("a"));
  membership.ReportLost(member, {.what = "gone"});
  membership.Beat(member, {.step = 3, .phase = "forward"}, seconds(1));
  EXPECT_EQ(membership.Find(member), nullptr);
}

}  // namespace
}  // namespace ranklab::coordinator
