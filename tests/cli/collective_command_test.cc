#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/collective/sweep.h"
#include "cli/collective/table.h"
#include "cli/collective/trial_buffers.h"
#include "core/status.h"

namespace ranklab::cli {
namespace {

using collectives::Collective;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Collective kCollectives[] = {Collective::kAllReduce,     Collective::kAllGather,
                                       Collective::kReduceScatter, Collective::kBroadcast,
                                       Collective::kReduce,        Collective::kAllToAll};

std::vector<std::int64_t> CountsOf(const SweepOptions& options) {
  const auto trials = TrialsOf(options);
  EXPECT_TRUE(trials.ok()) << trials.status();
  std::vector<std::int64_t> counts;
  for (const Trial& trial : *trials) {
    counts.push_back(trial.count);
  }
  return counts;
}

TEST(Sweep, GrowsByFactorOrByStepUpToTheLargestSize) {
  EXPECT_THAT(CountsOf({.min_bytes = 8, .max_bytes = 100, .step_factor = 2}),
              ElementsAre(2, 4, 8, 16));
  EXPECT_THAT(CountsOf({.min_bytes = 0, .max_bytes = 10, .step_bytes = 5}), ElementsAre(0, 1, 2));
}

TEST(Sweep, RoundsBlocksOfRanksDownToSixteenBytes) {
  SweepOptions options{.ranks = 8, .collective = "all_gather", .min_bytes = 1000030 * 4};
  options.max_bytes = options.min_bytes;
  EXPECT_THAT(CountsOf(options), ElementsAre(125'000));  // nccl-tests' own
}

TEST(Sweep, NamesWhatWouldBeRight) {
  const auto message = [](const SweepOptions& options) {
    const auto trials = TrialsOf(options);
    EXPECT_EQ(trials.status().code(), absl::StatusCode::kInvalidArgument);
    return MessageOf(trials.status());
  };
  EXPECT_THAT(message({.algorithm = "rign"}), HasSubstr("one of: ring, bidirectional_ring"));
  EXPECT_THAT(message({.collective = "alltoallv"}), HasSubstr("all_gather"));
  EXPECT_THAT(message({.dtype = "fp8"}), HasSubstr("one of: float, half, bfloat16, int32"));
  EXPECT_THAT(message({.op = "avg"}), HasSubstr("one of: sum, max, min"));
  EXPECT_THAT(message({.min_bytes = 2, .max_bytes = 1}), HasSubstr("-e 1 is smaller than -b 2"));
  EXPECT_THAT(message({.min_bytes = 0, .step_factor = 2}), HasSubstr("stays 0"));
  EXPECT_THAT(message({.ranks = 2, .root = 2}), HasSubstr("0 to 1"));
}

TEST(Trial, IsReadBackFromItsLine) {
  const Trial trial{.collective = Collective::kReduce,
                    .algorithm = "binomial",
                    .chunks = 3,
                    .dtype = compute::DType::kInt32,
                    .op = compute::ReduceOp::kMax,
                    .root = 1,
                    .count = std::int64_t{1} << 40,
                    .in_place = true,
                    .warmup = 0,
                    .iterations = 7,
                    .check = false};
  const auto read = ReadTrial(TrialLine(trial));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(TrialLine(*read), TrialLine(trial));
  EXPECT_EQ(ReadTrial("{}").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadMeasurement("no").status().code(), absl::StatusCode::kInvalidArgument);
}

// One rank is its own group: what it sends is what it gets.
TEST(TrialBuffers, FindTheCopyOfOneRankRightAndEveryChangedElementWrong) {
  for (const Collective collective : kCollectives) {
    for (const auto dtype : {compute::DType::kFloat32, compute::DType::kFloat16,
                             compute::DType::kBFloat16, compute::DType::kInt32}) {
      TrialMemory memory;
      TrialBuffers buffers({.collective = collective, .dtype = dtype, .count = 100}, 1, 0, memory);
      buffers.Fill();
      EXPECT_EQ(buffers.CountWrong(), 100) << NcclName(collective);
      buffers.CopyIn();
      if (collective == Collective::kAllToAll) {
        memory.output = memory.input;
      }
      EXPECT_EQ(buffers.CountWrong(), 0) << NcclName(collective);
      const auto size = static_cast<std::size_t>(compute::SizeOf(dtype));
      memory.output[17 * size] ^= std::byte{1};
      memory.output[100 * size - 1] ^= std::byte{1};
      EXPECT_EQ(buffers.CountWrong(), 2) << NcclName(collective);
    }
  }
}

TEST(TrialBuffers, SumWhatAllRanksSend) {
  constexpr int kRanks = 3;
  std::vector<TrialMemory> memories(kRanks);
  std::vector<float> sums(50);
  for (Rank rank = 0; rank < kRanks; ++rank) {
    TrialBuffers buffers({.count = 50, .in_place = true}, kRanks, rank,
                         memories[static_cast<std::size_t>(rank)]);
    buffers.Fill();
    const auto sent = compute::HostValues<float>(buffers.output());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] += sent[i];
    }
    if (rank + 1 == kRanks) {
      std::copy(sums.begin(), sums.end(), sent.begin());
      EXPECT_EQ(buffers.CountWrong(), 0);
    }
  }
}

Row SomeRow(double seconds) {
  return {
      .trial = {.count = 262'144},
      .measured = {Measurement{.seconds = seconds}, Measurement{.seconds = seconds, .wrong = 3}}};
}

TEST(CollectiveTable, HasTheColumnsOfNcclTests) {
  EXPECT_EQ(
      PrintRow(SomeRow(1e-3), 4),
      "     1048576        262144     float     sum      -1  1000.00    1.05    1.57       0  "
      "1000.00    1.05    1.57       3\n");
  EXPECT_THAT(PrintRow(SomeRow(0.05), 4), HasSubstr("  50000.0    0.02 "));
  EXPECT_THAT(PrintRow(SomeRow(20), 4), HasSubstr("  2.0e+07 "));
  EXPECT_THAT(PrintRow(SomeRow(1e-3), 1), HasSubstr("    1.05     n/a       0"));
}

TEST(CollectiveTable, ShowsARivalsTimeOverOurs) {
  Row row = SomeRow(1e-3);
  row.rivals = {{.name = "other", .why_not = "", .measured = {Measurement{.seconds = 1.5e-3}}},
                {.name = "third", .why_not = "has no sum"}};
  EXPECT_THAT(PrintRow(row, 2), HasSubstr("N/A  x 1.50     N/A\n# third: has no sum\n"));
}

TEST(CollectiveTable, CountsWrongElements) {
  EXPECT_EQ(WrongIn({SomeRow(1), SomeRow(1)}), 6);
  EXPECT_THAT(PrintTail({SomeRow(1)}, {}), HasSubstr("# Out of bounds values : 3 FAILED"));
}

}  // namespace
}  // namespace ranklab::cli
