// `ranklab collective`: ranks as processes, verified, and what happens when one is lost.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <signal.h>

#include "tests/cluster/program.h"

namespace ranklab::cluster_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Seconds kLimit(120);

std::vector<std::string> Words(std::vector<std::string> flags) {
  flags.insert(flags.begin(), "collective");
  return flags;
}

// Sizes below a rank's share, uneven ones, and one that travels in pieces; every algorithm.
TEST(CollectiveCommand, EveryCollectiveComesOutRight) {
  for (const char* collective :
       {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall"}) {
    const Finished run =
        RunToEnd(Words({"--ranks", "3", "--collective", collective, "--algorithm", "all", "-b", "4",
                        "-e", "1M", "-i", "999999", "-n", "1", "-d", "all", "--json"}),
                 kLimit);
    EXPECT_EQ(run.exit_code, 0) << collective << run.err;
    const nlohmann::json report = nlohmann::json::parse(run.out, nullptr, false);
    ASSERT_FALSE(report.is_discarded()) << run.out;
    EXPECT_EQ(report["out_of_bounds"]["count"], 0);
    ASSERT_GE(report["results"].size(), 6U);
    for (const nlohmann::json& row : report["results"]) {
      EXPECT_EQ(row["out_of_place"]["nwrong"], 0) << row;
    }
  }
}

// As above, in messages smaller and larger than the memory that two ranks share.
TEST(CollectiveCommand, ComesOutRightThroughSharedMemory) {
  const Finished run =
      RunToEnd(Words({"--ranks", "3", "--transport", "shm", "--spin", "20", "--algorithm", "all",
                      "-b", "4", "-e", "9M", "-i", "4999999", "-n", "2", "--json"}),
               kLimit);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const nlohmann::json report = nlohmann::json::parse(run.out, nullptr, false);
  ASSERT_FALSE(report.is_discarded()) << run.out;
  EXPECT_EQ(report["config"]["transport"], "shm");
  EXPECT_EQ(report["out_of_bounds"]["count"], 0);
}

TEST(CollectiveCommand, PrintsARowASize) {
  const Finished run = RunToEnd(
      Words({"--ranks", "2", "-b", "1K", "-e", "4K", "-f", "2", "-n", "2", "-o", "max"}), kLimit);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\n        1024           256     float     max      -1  "));
  EXPECT_THAT(run.out, HasSubstr("\n        4096          1024     float     max      -1  "));
  EXPECT_THAT(run.out, HasSubstr("# Out of bounds values : 0 OK"));
}

TEST(CollectiveCommand, RefusesMistakesByName) {
  const Finished half = RunToEnd(Words({"-d", "fp8"}), kLimit);
  EXPECT_EQ(half.exit_code, 2);
  EXPECT_THAT(half.err, HasSubstr("\"fp8\" is not measured; one of: float"));
  EXPECT_EQ(RunToEnd(Words({"-b", "1M", "-e", "1K"}), kLimit).exit_code, 2);
  EXPECT_EQ(RunToEnd(Words({"-f", "1"}), kLimit).exit_code, 2);
}

// A run that would take very long, once its ranks are at work.
class EndlessCollective : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(WaitUntil([this] { return run_.out().find("busbw") != std::string::npos; }, kLimit))
        << run_.err();
  }

  void ExpectNothingLeft() const {
    const std::vector<ProcessSeen> left = run_.LeftAfter(Seconds(10));
    EXPECT_THAT(left, IsEmpty()) << Describe(left);
  }

  Program run_{Words({"--ranks", "3", "-b", "1M", "-e", "1M", "-n", "1000000", "--timeout", "2"})};
};

TEST_F(EndlessCollective, NamesTheRankThatWasKilled) {
  kill(run_.Find("collective-rank", 1).pid, SIGKILL);
  EXPECT_EQ(run_.Wait(kLimit).exit_code, 3);
  EXPECT_THAT(run_.err(), HasSubstr("rank 1 was ended by signal 9 (Killed)"));
  ExpectNothingLeft();
}

TEST_F(EndlessCollective, NamesTheRankThatStands) {
  kill(run_.Find("collective-rank", 2).pid, SIGSTOP);
  EXPECT_EQ(run_.Wait(kLimit).exit_code, 3);
  EXPECT_THAT(run_.err(), HasSubstr("rank 2 does not answer; rank "));
  EXPECT_THAT(run_.err(), HasSubstr("waited 2"));
  ExpectNothingLeft();
}

TEST_F(EndlessCollective, LeavesNothingAfterCtrlC) {
  run_.Signal(SIGINT);
  EXPECT_NE(run_.Wait(kLimit).exit_code, 0);
  ExpectNothingLeft();
}

TEST_F(EndlessCollective, LeavesNothingWhenItIsKilled) {
  run_.Signal(SIGKILL);
  run_.Wait(kLimit);
  ExpectNothingLeft();
}

}  // namespace
}  // namespace ranklab::cluster_test
