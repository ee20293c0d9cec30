#include "experiment/network_over_repeats.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ranklab::experiment {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A network of 100 MB/s and 4 ms, as one worker saw it in one repeat.
CellRun Repeat(double latency_ms, double megabytes_per_second = 100, Bytes received = 1000) {
  NetworkRecord network{.endpoint = "worker 0",
                        .judged = true,
                        .asked_bandwidth = 100e6,
                        .bandwidth_median = megabytes_per_second * 1e6,
                        .asked_latency = 4e-3,
                        .latency_median = latency_ms * 1e-3,
                        .body_received = received,
                        .body_claimed = 1000};
  CellRun run;
  run.workers.push_back({.network = network});
  run.servers.push_back({.network = network});
  run.servers.back().network.endpoint = "server 0";
  return run;
}

std::vector<NetworkRecord> Over(const std::array<CellRun, 3>& repeats) {
  return NetworkOverRepeats(std::array{&repeats[0], &repeats[1], &repeats[2]});
}

TEST(NetworkOverRepeats, OneDisturbedRepeatIsNotTheNetworksWord) {
  const auto network = Over({Repeat(4.1), Repeat(4.05), Repeat(9, 60)});
  ASSERT_EQ(network.size(), 2U);
  EXPECT_EQ(network[0].endpoint, "worker 0");
  EXPECT_EQ(network[1].endpoint, "server 0");
  EXPECT_DOUBLE_EQ(network[0].latency_median, 4.1e-3);
  EXPECT_DOUBLE_EQ(network[0].bandwidth_median, 100e6);
  EXPECT_TRUE(network[0].held);
  EXPECT_THAT(network[0].findings, IsEmpty());
}

TEST(NetworkOverRepeats, TwoOfThreeAre) {
  const auto network = Over({Repeat(4.3), Repeat(4.05), Repeat(4.4)});
  EXPECT_FALSE(network[0].held);
  EXPECT_THAT(network[0].findings, ElementsAre(HasSubstr("latency 4300.0 us")));
}

TEST(NetworkOverRepeats, WrongBytesInOneRepeatBreakTheWord) {
  CellRun dropped = Repeat(4.1, 100, 900);
  dropped.workers[0].network.findings = {"900 bytes arrived where the exchange moves 1000"};
  const auto network = Over({Repeat(4.1), dropped, Repeat(4.1)});
  EXPECT_FALSE(network[0].held);
  EXPECT_THAT(network[0].findings, ElementsAre(HasSubstr("900 bytes")));
}

TEST(NetworkOverRepeats, ARepeatThatTimedNothingBreaksTheWord) {
  EXPECT_FALSE(Over({Repeat(0, 0), Repeat(4.1), Repeat(4.1)})[0].held);
}

TEST(NetworkOverRepeats, AFigureIsTheMedianOfTheRepeatsThatHaveIt) {
  const auto network = Over({Repeat(0), Repeat(4.1), Repeat(4.15)});
  EXPECT_DOUBLE_EQ(network[0].latency_median, 4.125e-3);
  EXPECT_TRUE(network[0].held);
}

TEST(NetworkOverRepeats, ANetworkThatTheLabChangesIsNotJudged) {
  std::array<CellRun, 3> repeats = {Repeat(9), Repeat(9), Repeat(9)};
  for (CellRun& run : repeats) {
    run.workers[0].network.judged = false;
  }
  EXPECT_THAT(Over(repeats)[0].findings, IsEmpty());
}

}  // namespace
}  // namespace ranklab::experiment
