// The control plane over real gRPC on this machine: a coordinator, members that answer without
// training, and a client.
#include <thread>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "coordinator/coordinator_service.h"
#include "coordinator/lab_client.h"
#include "protos/coordinator.grpc.pb.h"
#include "tests/coordinator/fake_member.h"
#include "transport/grpc/service_host.h"
#include "transport/tcp/live_loop.h"

namespace ranklab::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr const char* kLab = R"(
name: two
model: {kind: mlp, layers: [64, 16, 10]}
data: {kind: digits}
train: {steps: 3, global_batch: 32, optimizer: sgd, learning_rate: 0.1}
cluster: {workers: 2, servers: 1}
sweep: {exchange: [{kind: ps}, {kind: collective, algorithm: ring}]}
)";

class Coordinator {
 public:
  explicit Coordinator(const std::string& address = "127.0.0.1:0")
      : service_(loop_, {.build = "b",
                         .forecast = [](const experiment::Cell&) -> absl::StatusOr<CellForecast> {
                           return CellForecast{};
                         },
                         .finished =
                             [this](int exit_code) {
                               absl::MutexLock lock(&mutex_);
                               finished_ = exit_code;
                             }}) {
    auto host =
        transport::ServiceHost::Start({.address = address, .services = {&service_.service()}});
    EXPECT_TRUE(host.ok()) << host.status();
    host_ = *std::move(host);
  }
  ~Coordinator() { Stop(); }

  void Stop() {
    if (host_ != nullptr) {
      loop_.RunAndWait([this] { service_.Shutdown(0, "the test is over"); });
      host_->Shutdown(milliseconds(500));
      host_.reset();
    }
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(host_->port()); }
  EventLoop& loop() { return loop_; }

  std::optional<int> AwaitFinished() {
    absl::MutexLock lock(&mutex_);
    const auto finished = [this] { return finished_.has_value(); };
    mutex_.AwaitWithTimeout(absl::Condition(&finished), absl::Seconds(20));
    return finished_;
  }

 private:
  transport::LiveLoop loop_;
  absl::Mutex mutex_;
  std::optional<int> finished_;
  CoordinatorService service_;
  std::unique_ptr<transport::ServiceHost> host_;
};

class CoordinatorClusterTest : public testing::Test {
 protected:
  FakeMember& Add(FakeMember::Options options = {}) {
    options.coordinator = coordinator.address();
    return *members.emplace_back(std::make_unique<FakeMember>(member_loop, options));
  }
  FakeMember& AddJoined(FakeMember::Options options = {}) {
    FakeMember& member = Add(std::move(options));
    EXPECT_TRUE(member.AwaitJoined());
    return member;
  }

  std::unique_ptr<LabClient> NewClient() {
    auto client = LabClient::Connect(coordinator.address(), seconds(10));
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }

  static v1::RunLabRequest LabRequest(bool dismiss_pool) {
    v1::RunLabRequest request;
    request.set_lab_name("labs/two.yaml");
    request.set_lab_text(kLab);
    request.set_build("b");
    request.set_dismiss_pool(dismiss_pool);
    request.set_join_timeout_ns(Nanos(seconds(10)).count());
    return request;
  }

  // Runs the lab on a thread of its own and keeps the events.
  void BeginLab(LabClient& client, bool dismiss_pool) {
    lab_thread = std::thread([this, &client, dismiss_pool] {
      lab_status = client.RunLab(LabRequest(dismiss_pool), seconds(5),
                                 [this](const v1::RunEvent& event) { events.push_back(event); });
    });
  }
  void AwaitLab() { lab_thread.join(); }
  v1::Verdict VerdictOf() const { return events.empty() ? v1::Verdict() : events.back().verdict(); }
  int CountOf(v1::RunEvent::KindCase kind) const {
    return static_cast<int>(
        std::count_if(events.begin(), events.end(),
                      [kind](const v1::RunEvent& event) { return event.kind_case() == kind; }));
  }

  Coordinator coordinator;
  transport::LiveLoop member_loop;
  std::vector<std::unique_ptr<FakeMember>> members;
  std::thread lab_thread;
  absl::Status lab_status;
  std::vector<v1::RunEvent> events;  // of the lab thread until AwaitLab
};

TEST_F(CoordinatorClusterTest, RunsALabOfTwoCellsAndItsBaselineAndDismissesThePool) {
  FakeMember& first = AddJoined();
  FakeMember& second = AddJoined();
  FakeMember& server = AddJoined({.role = Role::kServer});
  const auto client = NewClient();
  BeginLab(*client, true);
  AwaitLab();
  EXPECT_TRUE(lab_status.ok()) << lab_status;
  EXPECT_EQ(VerdictOf().exit_code(), 0) << VerdictOf().text();
  ASSERT_EQ(CountOf(v1::RunEvent::kPlanned), 1);
  ASSERT_TRUE(events[0].has_planned());
  EXPECT_GE(events[0].planned().runs(), 2);
  EXPECT_EQ(CountOf(v1::RunEvent::kStarted), events[0].planned().runs());
  EXPECT_EQ(CountOf(v1::RunEvent::kEnded), events[0].planned().runs());
  EXPECT_GE(CountOf(v1::RunEvent::kRows), events[0].planned().runs());
  for (FakeMember* member : {&first, &second, &server}) {
    const auto end = member->AwaitEnd();
    ASSERT_TRUE(end.has_value());
    EXPECT_TRUE(end->why.ok()) << end->why;
    EXPECT_EQ(end->exit_code, 0);
  }
  EXPECT_EQ(coordinator.AwaitFinished(), 0);
}

TEST_F(CoordinatorClusterTest, ThePoolStaysForTheNextLab) {
  AddJoined();
  AddJoined();
  AddJoined({.role = Role::kServer});
  const auto client = NewClient();
  for (int lab = 0; lab < 2; ++lab) {
    events.clear();
    BeginLab(*client, false);
    AwaitLab();
    EXPECT_EQ(VerdictOf().exit_code(), 0) << VerdictOf().text();
  }
  EXPECT_EQ(client->Status()->members_size(), 3);
}

TEST_F(CoordinatorClusterTest, AKilledWorkerIsNamedAndEverybodyElseDismissed) {
  FakeMember& victim = AddJoined({.wanted_rank = 1, .stays_in_training = true});
  FakeMember& other = AddJoined({.wanted_rank = 0, .stays_in_training = true});
  FakeMember& server = AddJoined({.role = Role::kServer});
  const auto client = NewClient();
  BeginLab(*client, true);
  ASSERT_TRUE(victim.AwaitTraining());
  victim.Kill();
  AwaitLab();
  EXPECT_EQ(VerdictOf().exit_code(), 3);
  // Which step it was depends on whether its first word came before its end: conductor_test knows.
  EXPECT_THAT(VerdictOf().text(), HasSubstr("worker 1 was lost"));
  EXPECT_THAT(VerdictOf().text(), HasSubstr("the session's connection closed"));
  for (FakeMember* member : {&other, &server}) {
    const auto end = member->AwaitEnd();
    ASSERT_TRUE(end.has_value());
    EXPECT_TRUE(end->why.ok()) << end->why;
    EXPECT_EQ(end->exit_code, 3);
  }
  EXPECT_EQ(coordinator.AwaitFinished(), 3);
}

TEST_F(CoordinatorClusterTest, InjectionsReachTheMembersAndTheClientHearsOfThem) {
  FakeMember& worker = AddJoined({.stays_in_training = true});
  FakeMember& other = AddJoined({.stays_in_training = true});
  AddJoined({.role = Role::kServer});
  const auto client = NewClient();
  BeginLab(*client, false);
  ASSERT_TRUE(worker.AwaitTraining());
  ASSERT_TRUE(other.AwaitTraining());
  const auto second = NewClient();
  v1::InjectRequest request;
  request.set_text("{rank: 1, slow: {phase: backward, factor: 2}}");
  const auto reply = second->Inject(request);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_GE(reply->ranks(), 2);
  EXPECT_TRUE(worker.AwaitInjection());
  EXPECT_TRUE(other.AwaitInjection());

  const auto status = second->Status();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->lab(), "two");
  EXPECT_EQ(status->members_size(), 3);

  request.set_text("{rank: 9, kill: true}");
  EXPECT_EQ(second->Inject(request).status().code(), absl::StatusCode::kInvalidArgument);

  client->Cancel();
  AwaitLab();
  EXPECT_EQ(lab_status.code(), absl::StatusCode::kCancelled) << lab_status;
  EXPECT_TRUE(worker.AwaitAbort());
  EXPECT_TRUE(other.AwaitAbort());
}

TEST_F(CoordinatorClusterTest, ATakenRankAndAnotherBuildAreRefusedByName) {
  AddJoined({.wanted_rank = 1});
  const auto taken = Add({.wanted_rank = 1}).AwaitEnd();
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->why.code(), absl::StatusCode::kAlreadyExists) << taken->why;
  EXPECT_EQ(taken->exit_code, 2);
  EXPECT_THAT(MessageOf(taken->why), HasSubstr("rank 1 is taken by worker member 1"));
  const auto other = Add({.build = "other"}).AwaitEnd();
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(other->why.code(), absl::StatusCode::kFailedPrecondition) << other->why;
  EXPECT_THAT(MessageOf(other->why), HasSubstr("the coordinator is build \"b\""));
}

TEST_F(CoordinatorClusterTest, AStrangersFirstMessageIsRefused) {
  const auto stub = v1::Coordinator::NewStub(
      grpc::CreateChannel(coordinator.address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + seconds(20));
  const auto stream = stub->Session(&context);
  v1::MemberMessage message;
  message.mutable_ready()->set_generation(1);
  stream->Write(message);
  v1::CoordinatorMessage answer;
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(AddJoined().AwaitJoined()) << "without harm to others";
}

TEST_F(CoordinatorClusterTest, ALostCoordinatorEndsTheSessionAndTheLab) {
  FakeMember& worker = AddJoined({.stays_in_training = true});
  FakeMember& other = AddJoined({.stays_in_training = true});
  AddJoined({.role = Role::kServer});
  const auto client = NewClient();
  BeginLab(*client, false);
  ASSERT_TRUE(worker.AwaitTraining());
  coordinator.Stop();
  AwaitLab();
  EXPECT_TRUE(worker.AwaitEnd().has_value());
  EXPECT_TRUE(other.AwaitEnd().has_value());
  EXPECT_EQ(VerdictOf().exit_code(), 3);
  EXPECT_THAT(VerdictOf().text(), HasSubstr("the coordinator was stopped"));
  EXPECT_EQ(client->Status().status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(CoordinatorClusterTest, AMemberMayStartBeforeItsCoordinator) {
  const std::string address = coordinator.address();
  coordinator.Stop();
  FakeMember early(member_loop, {.coordinator = address});
  Coordinator late(address);
  EXPECT_TRUE(early.AwaitJoined());
}

TEST_F(CoordinatorClusterTest, NobodyAtTheAddressIsSaidWithTheAddress) {
  const std::string address = coordinator.address();
  coordinator.Stop();
  const auto client = LabClient::Connect(address, milliseconds(300));
  EXPECT_EQ(client.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(MessageOf(client.status()), HasSubstr(address));
}

// Neither says whose clock it reads, so they ask. Both loops read one steady clock: the true offset
// is 0 and must lie within the residual.
TEST_F(CoordinatorClusterTest, ClocksAreAlignedWithinTheirResidual) {
  FakeMember& member = AddJoined();
  const Nanos give_up = member_loop.Now() + seconds(20);
  while (member.session().clock_residual() == Nanos(0) && member_loop.Now() < give_up) {
    std::this_thread::yield();
  }
  const Nanos residual = member.session().clock_residual();
  ASSERT_GT(residual, Nanos(0));
  EXPECT_LE(std::abs(member.session().clock_offset().count()), residual.count() + 1);
}

}  // namespace
}  // namespace ranklab::coordinator
