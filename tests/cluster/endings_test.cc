// SIGTERM, Ctrl-C and the like, whatever a process is waiting for: it ends by itself with its exit
// code, and leaves nobody behind. Prints how long the end took; the bound asserted leaves room for
// a busy machine (2 s is what the program is built for).
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/program.h"
#include "tests/cluster/services.h"

namespace ranklab::cluster_test {
namespace {

using ::testing::HasSubstr;

constexpr Seconds kLimit(60);
constexpr Seconds kBound(15);
constexpr char kNobody[] = "127.0.0.1:1";

constexpr char kLab[] = R"(name: endings
model:   {kind: mlp, layers: [64, 16, 10]}
data:    {kind: digits}
train:   {steps: 10, global_batch: 64}
cluster: {workers: 3, device: cpu}
exchange: {kind: collective, algorithm: ring}
)";

void ExpectEnds(Program& program, int signal, int exit_code, const char* what) {
  program.Signal(signal);
  const Ending ending = program.Wait(kLimit);
  std::printf("%s: over after %.2f s\n", what, ending.waited.count());
  EXPECT_TRUE(ending.in_time) << what;
  EXPECT_LT(ending.waited, kBound) << what;
  EXPECT_EQ(ending.exit_code, exit_code) << what << "\n" << program.err();
  EXPECT_EQ(Describe(program.LeftAfter(kBound)), "") << what;
}

// Signals are blocked from the command's first line on, and by then it has more than one thread:
// one waits for them.
bool WatchesForSignals(const Program& program) {
  const std::string status = ReadText("/proc/" + std::to_string(program.pid()) + "/status");
  const std::size_t at = status.find("SigBlk:\t");
  const std::size_t threads = status.find("Threads:\t");
  if (at == std::string::npos || threads == std::string::npos) {
    return false;
  }
  const unsigned long long blocked = std::stoull(status.substr(at + 8, 16), nullptr, 16);
  return (blocked & (1ULL << (SIGTERM - 1))) != 0 && std::stoi(status.substr(threads + 9)) > 1;
}

TEST(Endings, ASignalEndsEveryServiceThatIsIdle) {
  Coordinator coordinator;
  Pool pool(coordinator, 1, 2);
  ExpectEnds(*pool.members()[0], SIGTERM, 3, "idle worker");
  ExpectEnds(*pool.members()[1], SIGINT, 3, "idle server");
  ExpectEnds(*pool.members()[2], SIGHUP, 3, "another idle server");
  ExpectEnds(coordinator.program(), SIGQUIT, 3, "coordinator");
}

TEST(Endings, ASignalEndsAMemberThatWaitsForItsCoordinator) {
  for (const char* role : {"worker", "ps"}) {
    Program member({role, "--coordinator", kNobody, "--listen", "127.0.0.1:0"});
    ASSERT_TRUE(WaitUntil([&] { return WatchesForSignals(member); }, kLimit));
    ExpectEnds(member, SIGTERM, 3, role);
  }
}

TEST(Endings, ASignalEndsARunThatWaitsForItsCoordinator) {
  const TemporaryFolder folder;
  Program run({"run", folder.Write("lab.yaml", kLab), "--coordinator", kNobody, "--join-timeout",
               "600", "--out", folder.path() + "/out"});
  ASSERT_TRUE(WaitUntil([&] { return WatchesForSignals(run); }, kLimit));
  ExpectEnds(run, SIGINT, 3, "run without a coordinator");
  EXPECT_THAT(run.err(), HasSubstr("interrupted"));
}

TEST(Endings, ASignalEndsARunThatWaitsForMembersAndThePoolStays) {
  Coordinator coordinator;
  Pool pool(coordinator, 2, 0);
  const TemporaryFolder folder;
  Program run({"run", folder.Write("lab.yaml", kLab), "--coordinator", coordinator.address(),
               "--join-timeout", "600", "--out", folder.path() + "/out"});
  ASSERT_TRUE(WaitUntil(
      [&] {
        const nlohmann::json status = StatusOf(coordinator.address());
        return !status.is_discarded() && status["lab"] == "endings";
      },
      kLimit));
  ExpectEnds(run, SIGTERM, 3, "run that gathers");
  EXPECT_THAT(run.err(), HasSubstr("interrupted"));
  EXPECT_TRUE(WaitUntil([&] { return StatusOf(coordinator.address())["lab"] == ""; }, kLimit));
  EXPECT_EQ(StatusOf(coordinator.address())["members"].size(), 2U);
}

// SIGHUP: its terminal is closed; SIGQUIT: Ctrl-\.
TEST(Endings, ASignalEndsALocalRunAndAllItStarted) {
  for (const int signal : {SIGTERM, SIGHUP, SIGQUIT}) {
    const TemporaryFolder folder;
    Program run({"run", folder.Write("lab.yaml", kLab), "--set", "train.steps=1000000", "--out",
                 folder.path() + "/out"});
    ASSERT_TRUE(WaitUntil([&] { return run.Alive().size() == 1U + 1 + 3; }, kLimit));
    ExpectEnds(run, signal, 3, strsignal(signal));
    EXPECT_THAT(run.err(), HasSubstr("interrupted"));
  }
}

TEST(Endings, EveryProcessOfARunIsFoundByItsName) {
  const TemporaryFolder folder;
  Program run({"run", folder.Write("lab.yaml", kLab), "--set", "train.steps=1000000", "--out",
               folder.path() + "/out"});
  const auto named = [&] {
    const std::vector<ProcessSeen> alive = run.Alive();
    return alive.size() == 1U + 1 + 3 &&
           std::all_of(alive.begin(), alive.end(), [](const ProcessSeen& process) {
             return ReadText("/proc/" + std::to_string(process.pid) + "/comm") == "ranklab\n";
           });
  };
  EXPECT_TRUE(WaitUntil(named, kLimit)) << Describe(run.Alive());
  ExpectEnds(run, SIGINT, 3, "local run");
}

}  // namespace
}  // namespace ranklab::cluster_test
