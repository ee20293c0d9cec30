// The services as processes of their own, and a client that comes and goes.
#include "tests/cluster/services.h"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "tests/cluster/program.h"
#include "tests/cluster/record.h"

namespace ranklab::cluster_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Seconds kLimit(90);

std::string LabOf(int workers) {
  return R"(name: services
seed: 3
model:   {kind: mlp, layers: [64, 16, 10]}
data:    {kind: digits}
train:   {steps: 10, global_batch: 64}
cluster: {servers: 1, device: cpu, workers: )" +
         std::to_string(workers) + R"(}
sweep:
  exchange: [{kind: collective, algorithm: ring}, {kind: ps, order: rank}]
)";
}

// `ranklab run` on the cluster of `coordinator`, its record below `out`.
Finished RunOn(const Coordinator& coordinator, int workers, const std::string& out,
               const std::string& more = "") {
  const TemporaryFolder folder;
  return RunToEnd({"run", folder.Write("lab.yaml", LabOf(workers) + more), "--coordinator",
                   coordinator.address(), "--join-timeout", "2", "--out", out},
                  kLimit);
}

std::string StandingPort(const std::string& address) {
  return address.substr(address.rfind(':') + 1);
}

TEST(Services, APoolRunsOneLabAfterAnother) {
  Coordinator coordinator;
  Pool pool(coordinator, 2, 1);
  const TemporaryFolder first;
  const TemporaryFolder second;
  for (const TemporaryFolder* out : {&first, &second}) {
    const Finished run = RunOn(coordinator, 2, out->path());
    ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  }
  const auto cells = ReadOneRecord(first.path()).Cells();
  const auto again = ReadOneRecord(second.path()).Cells();
  ASSERT_EQ(cells.size(), 2U);
  ASSERT_EQ(again.size(), 2U);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    EXPECT_EQ(cells[i].param_hashes, again[i].param_hashes);
  }
  for (const auto& member : pool.members()) {
    EXPECT_EQ(member->Alive().size(), 1U) << member->err();
  }
  const nlohmann::json status = StatusOf(coordinator.address());
  ASSERT_FALSE(status.is_discarded());
  EXPECT_EQ(status["lab"], "");
  EXPECT_EQ(status["verdict"], "3 runs of 3 cells are complete") << "with the row `none`";
  ASSERT_EQ(status["members"].size(), 3U);
  int servers = 0;
  for (const auto& member : status["members"]) {
    servers += member["role"] == "ROLE_SERVER" ? 1 : 0;
    EXPECT_EQ(member["host"], "127.0.0.1");
    EXPECT_GT(member["grpc_port"], 0);
  }
  EXPECT_EQ(servers, 1);
}

TEST(Services, AllIsWhoeverIsInThePool) {
  Coordinator coordinator;
  Pool pool(coordinator, 3, 0);
  const TemporaryFolder folder;
  const std::string lab = folder.Write("lab.yaml", R"(name: everybody
model:   {kind: mlp, layers: [64, 16, 10]}
data:    {kind: digits}
train:   {steps: 5, batch_per_worker: 16}
cluster: {device: cpu, workers: all}
)");
  const Finished run = RunToEnd(
      {"run", lab, "--coordinator", coordinator.address(), "--out", folder.path() + "/out"},
      kLimit);
  ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  const auto cells = ReadOneRecord(folder.path() + "/out").Cells();
  ASSERT_EQ(cells.size(), 1U);
  EXPECT_EQ(cells[0].workers, 3);
  EXPECT_EQ(cells[0].param_hashes.size(), 3U);
}

TEST(Services, HealthIsServingOnceAProcessIsInAPool) {
  Coordinator coordinator;
  const Finished serving = RunToEnd({"health", coordinator.address()}, kLimit);
  EXPECT_EQ(serving.exit_code, 0) << serving.err;
  EXPECT_THAT(serving.out, HasSubstr("serving"));
  Pool pool(coordinator, 1, 0);
  const auto member = StatusOf(coordinator.address())["members"][0];
  const std::string worker = "127.0.0.1:" + std::to_string(member["grpc_port"].get<int>());
  EXPECT_EQ(RunToEnd({"health", worker}, kLimit).exit_code, 0);
  EXPECT_EQ(RunToEnd({"health", "127.0.0.1:1"}, kLimit).exit_code, 3);
}

TEST(Services, AKeptPoolLosesAMemberAndTakesAnother) {
  Coordinator coordinator({"--keep-pool"});
  Pool pool(coordinator, 2, 1);
  const TemporaryFolder folder;
  Program lab({"run", folder.Write("lab.yaml", LabOf(2)), "--coordinator", coordinator.address(),
               "--out", folder.path() + "/lost", "--set", "train.steps=100000"});
  ASSERT_TRUE(
      WaitUntil([&] { return WorkersPast(3, "services", coordinator.address()) == 2; }, kLimit));
  pool.members()[1]->Signal(SIGKILL);
  EXPECT_EQ(lab.Wait(kLimit).exit_code, 3);
  EXPECT_THAT(lab.err(), HasSubstr("worker 1 was lost"));
  Program another({"worker", "--coordinator", coordinator.address(), "--listen", "127.0.0.1:0"});
  const Finished next = RunOn(coordinator, 2, folder.path() + "/next");
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_EQ(pool.members()[0]->Alive().size(), 1U) << pool.members()[0]->err();
}

TEST(Services, OnceEndsEverybodyWithTheLabsExitCode) {
  Coordinator coordinator({"--once"});
  Pool pool(coordinator, 2, 1);
  const TemporaryFolder out;
  EXPECT_EQ(RunOn(coordinator, 2, out.path()).exit_code, 0);
  EXPECT_EQ(coordinator.program().Wait(kLimit).exit_code, 0) << coordinator.program().err();
  for (const auto& member : pool.members()) {
    EXPECT_EQ(member->Wait(kLimit).exit_code, 0) << member->err();
  }
}

// The client judges expectations, since it has the record; what ends with the lab hears of it.
TEST(Services, OnceEndsWithAFailedExpectationToo) {
  Coordinator coordinator({"--once"});
  Pool pool(coordinator, 2, 1);
  const TemporaryFolder out;
  const Finished run = RunOn(coordinator, 2, out.path(), "expect: [accuracy > 1.5]\n");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("expectations failed"));
  EXPECT_EQ(coordinator.program().Wait(kLimit).exit_code, 1) << coordinator.program().err();
  for (const auto& member : pool.members()) {
    EXPECT_EQ(member->Wait(kLimit).exit_code, 1) << member->err();
  }
}

TEST(Services, AMemberWithOnceEndsWithTheLabAndThePoolStays) {
  Coordinator coordinator;
  Pool pool(coordinator, 1, 1);
  Program once({"worker", "--coordinator", coordinator.address(), "--listen", "127.0.0.1:0",
                "--rank", "1", "--once"});
  const TemporaryFolder out;
  EXPECT_EQ(RunOn(coordinator, 2, out.path(), "expect: [accuracy > 1.5]\n").exit_code, 1);
  EXPECT_EQ(once.Wait(kLimit).exit_code, 1) << once.err();
  EXPECT_EQ(StatusOf(coordinator.address())["members"].size(), 2U);
}

TEST(Services, TooFewMembersAreCountedAndOnceSaysSoToo) {
  Coordinator coordinator({"--once"});
  Pool pool(coordinator, 2, 1);
  const TemporaryFolder out;
  const Finished run = RunOn(coordinator, 4, out.path());
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.err, HasSubstr("too few members after 2 s"));
  EXPECT_THAT(run.err, HasSubstr("needs 4 workers and 1 server; 2 workers and 1 server joined"));
  EXPECT_EQ(coordinator.program().Wait(kLimit).exit_code, 3);
  for (const auto& member : pool.members()) {
    EXPECT_EQ(member->Wait(kLimit).exit_code, 3) << member->err();
  }
}

TEST(Services, ATakenPortIsAnErrorWithAWayOut) {
  Coordinator coordinator;
  for (const char* role : {"coordinator", "worker", "ps"}) {
    const Finished second = RunToEnd({role, "--listen", coordinator.address()}, kLimit);
    EXPECT_EQ(second.exit_code, 2) << role;
    EXPECT_THAT(second.err, AllOf(HasSubstr(StandingPort(coordinator.address())),
                                  HasSubstr("choose another port")))
        << role;
  }
}

TEST(Services, ASecondProcessOfARankIsToldWhoHasIt) {
  Coordinator coordinator;
  Pool pool(coordinator, 1, 0);
  const std::string first_port =
      std::to_string(StatusOf(coordinator.address())["members"][0]["grpc_port"].get<int>());
  const Finished second = RunToEnd(
      {"worker", "--coordinator", coordinator.address(), "--listen", "127.0.0.1:0", "--rank", "0"},
      kLimit);
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_THAT(second.err,
              AllOf(HasSubstr("rank 0 is taken by worker"), HasSubstr("127.0.0.1:" + first_port)));
  EXPECT_EQ(pool.members()[0]->Alive().size(), 1U);
}

TEST(Services, AMemberOfAnotherBuildIsToldBothBuilds) {
  Coordinator coordinator;
  const std::string command =
      "/usr/bin/python3 tests/cluster/foreign_member.py " + coordinator.address();
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) {
    GTEST_SKIP() << "python3-grpcio is missing";
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_THAT(coordinator.program().err(),
              AllOf(HasSubstr("refused: worker at 127.0.0.1:1 is build \"another build\""),
                    HasSubstr("the coordinator is build \"ranklab ")));
  EXPECT_TRUE(StatusOf(coordinator.address())["members"].empty());
}

TEST(Services, AnAddressWithoutAPortIsRefusedBeforeAnythingIsTried) {
  const TemporaryFolder folder;
  const std::string lab = folder.Write("lab.yaml", LabOf(2));
  const std::vector<std::vector<std::string>> commands = {
      {"worker", "--coordinator"}, {"ps", "--coordinator"},
      {"status", "--coordinator"}, {"inject", "--reset", "--coordinator"},
      {"coordinator", "--listen"}, {"run", lab, "--out", folder.path() + "/out", "--coordinator"}};
  for (const std::vector<std::string>& command : commands) {
    for (const char* address : {"somewhere", "somewhere:", "somewhere:70700", "::1", "[::1]"}) {
      SCOPED_TRACE(command.front() + " " + address);
      std::vector<std::string> arguments = command;
      arguments.emplace_back(address);
      const Finished finished = RunToEnd(arguments, Seconds(30));
      EXPECT_EQ(finished.exit_code, 2);
      EXPECT_THAT(finished.err, AllOf(HasSubstr(command.back()), HasSubstr("HOST:PORT"),
                                      HasSubstr(":7070"), Not(HasSubstr("[::7070"))));
    }
  }
  EXPECT_TRUE(RecordsIn(folder.path() + "/out").empty());
}

TEST(Services, ACoordinatorThatCannotBeReachedIsNamed) {
  constexpr char kNobody[] = "127.0.0.1:1";
  const TemporaryFolder folder;
  const std::string lab = folder.Write("lab.yaml", LabOf(2));
  const std::vector<std::vector<std::string>> commands = {
      {"worker", "--listen", "127.0.0.1:0", "--join-timeout", "1"},
      {"ps", "--listen", "127.0.0.1:0", "--join-timeout", "1"},
      {"run", lab, "--join-timeout", "1", "--out", folder.path() + "/out"},
      {"status"},
      {"inject", "--reset"}};
  for (std::vector<std::string> command : commands) {
    SCOPED_TRACE(command.front());
    command.insert(command.end(), {"--coordinator", kNobody});
    const Finished finished = RunToEnd(command, Seconds(30));
    EXPECT_EQ(finished.exit_code, 3);
    EXPECT_THAT(finished.err, HasSubstr(kNobody));
  }
}

TEST(Services, LaunchersThatDisagreeAreRefusedByName) {
  const Finished worker = RunToEnd({"worker", "--listen", "127.0.0.1:0"}, kLimit,
                                   {{"RANK", "1"}, {"SLURM_PROCID", "0"}});
  EXPECT_EQ(worker.exit_code, 2);
  EXPECT_THAT(worker.err, AllOf(HasSubstr("RANK=1"), HasSubstr("SLURM_PROCID=0")));
}

TEST(Services, ASecondLabHasToWaitItsTurn) {
  Coordinator coordinator;
  Pool pool(coordinator, 2, 1);
  const TemporaryFolder folder;
  const std::string lab = folder.Write("lab.yaml", LabOf(2));
  Program first({"run", lab, "--coordinator", coordinator.address(), "--out",
                 folder.path() + "/first", "--set", "train.steps=100000"});
  ASSERT_TRUE(WaitUntil(
      [&] {
        return !StatusOf(coordinator.address())["lab"].empty() &&
               StatusOf(coordinator.address())["lab"] != "";
      },
      kLimit));
  const Finished second = RunOn(coordinator, 2, folder.path() + "/second");
  EXPECT_NE(second.exit_code, 0);
  EXPECT_THAT(second.err, HasSubstr("a lab is running: services"));
  first.Signal(SIGINT);
  EXPECT_EQ(first.Wait(kLimit).exit_code, 3);
  // The pool has survived both.
  const TemporaryFolder out;
  const Finished third = RunOn(coordinator, 2, out.path());
  EXPECT_EQ(third.exit_code, 0) << third.err;
}

// ---- somebody else's client -----------------------------------------------------------------

// Runs tests/cluster/foreign_client.py; 77: Debian's python3-grpcio is missing.
int ForeignClient(const std::string& address, const std::string& service, const char* method) {
  const std::string command = "/usr/bin/python3 tests/cluster/foreign_client.py " + address +
                              " --service " + service + " --call " + service + "/" + method;
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Services, AForeignClientIsAnsweredByEveryRole) {
  Coordinator coordinator;
  Pool pool(coordinator, 1, 1);
  const int answered = ForeignClient(coordinator.address(), "ranklab.v1.Coordinator", "Status");
  if (answered == 77) {
    GTEST_SKIP() << "python3-grpcio or python3-protobuf is missing";
  }
  EXPECT_EQ(answered, 0);
  const nlohmann::json status = StatusOf(coordinator.address());
  ASSERT_FALSE(status.is_discarded());
  for (const auto& member : status["members"]) {
    const std::string address = "127.0.0.1:" + std::to_string(member["grpc_port"].get<int>());
    const bool worker = member["role"] == "ROLE_WORKER";
    EXPECT_EQ(ForeignClient(address, worker ? "ranklab.v1.Worker" : "ranklab.v1.ParameterServer",
                            "Describe"),
              0);
  }
}

}  // namespace
}  // namespace ranklab::cluster_test
