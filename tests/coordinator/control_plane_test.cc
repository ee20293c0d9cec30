// The coordinator without gRPC, on virtual time: sessions that break the rules, one lab at a time,
// and how the process ends.
#include "coordinator/control_plane.h"

#include <map>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/status.h"
#include "sim/virtual_loop.h"

namespace ranklab::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Keeps what was sent; ends, as a real stream does, from the loop's queue after Close.
template <typename Interface, typename Message>
class StreamOnPaper : public Interface {
 public:
  StreamOnPaper(EventLoop& loop, ControlPlane& plane) : loop_(loop), plane_(plane) {}

  void Send(Message message) override {
    EXPECT_FALSE(closed.has_value());
    sent.push_back(std::move(message));
  }
  void Close(absl::Status status) override {
    if (closed) {
      return;
    }
    closed = std::move(status);
    loop_.Post([this] { GoAway(); });
  }
  void GoAway() {
    if (!std::exchange(gone_, true)) {
      plane_.Ended(static_cast<Interface&>(*this));
    }
  }

  std::vector<Message> sent;
  std::optional<absl::Status> closed;

 private:
  EventLoop& loop_;
  ControlPlane& plane_;
  bool gone_ = false;
};
using Session = StreamOnPaper<MemberStream, v1::CoordinatorMessage>;

class Client final : public StreamOnPaper<ClientStream, v1::RunEvent> {
 public:
  using StreamOnPaper::StreamOnPaper;

  void Drop(absl::Status status) override { Close(std::move(status)); }
  Bytes waiting() const override { return unread; }
  std::string peer() const override { return "ipv4:10.0.0.3:41234"; }

  Bytes unread = 0;
};

constexpr const char* kLab = R"(
name: small
model: {kind: mlp, layers: [64, 16, 10]}
data: {kind: digits}
train: {steps: 3, global_batch: 32, optimizer: sgd, learning_rate: 0.1}
cluster: {workers: 2}
exchange: {kind: collective, algorithm: ring}
)";

class ControlPlaneTest : public testing::Test {
 protected:
  explicit ControlPlaneTest(bool once = false) : plane(loop, Options(once)) {}
  ~ControlPlaneTest() override { plane.Shutdown(0, "the test is over"); }

  CoordinatorOptions Options(bool once) {
    return {.build = "b",
            .forecast = [](const experiment::Cell&) -> absl::StatusOr<CellForecast> {
              return CellForecast{};
            },
            .finished = [this](int exit_code) { finished.push_back(exit_code); },
            .once = once};
  }

  static v1::MemberMessage JoinMessage(const std::string& build = "b") {
    v1::MemberMessage message;
    message.mutable_join()->set_host("h");
    message.mutable_join()->set_build(build);
    return message;
  }

  Session& Open() {
    Session& session = *sessions.emplace_back(std::make_unique<Session>(loop, plane));
    plane.Opened(session);
    return session;
  }
  Session& Join(bool once = false) {
    Session& session = Open();
    v1::MemberMessage join = JoinMessage();
    join.mutable_join()->set_once(once);
    plane.Received(session, join);
    EXPECT_THAT(session.sent, SizeIs(1));
    EXPECT_TRUE(session.sent.back().has_joined());
    return session;
  }
  Client& NewClient() { return *clients.emplace_back(std::make_unique<Client>(loop, plane)); }
  v1::RunLabRequest LabRequest(bool dismiss_pool = false) {
    v1::RunLabRequest request;
    request.set_lab_name("labs/small.yaml");
    request.set_lab_text(kLab);
    request.set_build("b");
    request.set_join_timeout_ns(Nanos(seconds(2)).count());
    request.set_dismiss_pool(dismiss_pool);
    return request;
  }
  // Every member does at once what it is told to, until nobody is told anything more.
  void Work() {
    bool anything = true;
    while (std::exchange(anything, false)) {
      for (const auto& session : sessions) {
        std::size_t& read = read_[session.get()];
        while (read < session->sent.size()) {
          anything = true;
          Answer(*session, session->sent[read++]);
        }
      }
    }
  }
  void Answer(Session& session, const v1::CoordinatorMessage& told) {
    v1::MemberMessage message;
    if (told.has_assignment()) {
      message.mutable_ready()->set_generation(told.assignment().generation());
      message.mutable_ready()->set_lab_hash(told.assignment().lab_hash());
    } else if (told.has_go()) {
      message.mutable_result()->set_generation(told.go().generation());
    } else {
      return;
    }
    plane.Received(session, message);
  }
  static v1::ConcludeRequest Conclusion(int exit_code) {
    v1::ConcludeRequest request;
    request.set_exit_code(exit_code);
    request.set_text("what the client says");
    return request;
  }

  void Pass(Nanos duration) { loop.RunUntil(loop.Now() + duration); }

  sim::VirtualLoop loop;
  std::vector<int> finished;
  std::vector<std::unique_ptr<Session>> sessions;  // open until the plane is shut down
  std::vector<std::unique_ptr<Client>> clients;
  ControlPlane plane;

 private:
  std::map<const Session*, std::size_t> read_;
};

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
