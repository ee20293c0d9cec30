#include "collectives/schedule/verify.h"

#include <chrono>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/schedule/catalog.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Schedule Make(Collective collective, std::int32_t chunks, std::vector<std::vector<Op>> lists) {
  Schedule schedule;
  schedule.name = "handmade";
  schedule.collective = collective;
  schedule.group_size = static_cast<int>(lists.size());
  schedule.input_chunks = chunks;
  schedule.ops_of = [lists = std::move(lists)](Rank rank) {
    return lists[static_cast<std::size_t>(rank)];
  };
  return schedule;
}

Op Send(Rank peer, std::int32_t chunk, std::vector<OpIndex> after = {}) {
  return {.kind = OpKind::kSend, .peer = peer, .chunk = chunk, .after = std::move(after)};
}
Op Recv(Rank peer, std::int32_t chunk, std::vector<OpIndex> after = {}) {
  return {.kind = OpKind::kRecv, .peer = peer, .chunk = chunk, .after = std::move(after)};
}
Op RecvReduce(Rank peer, std::int32_t chunk, std::vector<OpIndex> after = {}) {
  return {.kind = OpKind::kRecvReduce, .peer = peer, .chunk = chunk, .after = std::move(after)};
}

std::string WhyNot(const Schedule& schedule) {
  const absl::Status status = Verify(schedule);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  return MessageOf(status);
}

class EverySchedule : public ::testing::TestWithParam<int> {};

TEST_P(EverySchedule, OfTheCatalogIsProved) {
  for (const CatalogEntry& entry : Catalog()) {
    for (const int chunks_per_rank : {1, 2, 3}) {
      if (chunks_per_rank > 1 && GetParam() > 17) {
        continue;  // the same pattern again, at the price of seconds
      }
      const auto schedule =
          entry.build({.group_size = GetParam(), .chunks_per_rank = chunks_per_rank});
      ASSERT_TRUE(schedule.ok()) << schedule.status();
      EXPECT_EQ(Verify(*schedule), absl::OkStatus())
          << entry.name << " " << NameOf(entry.collective) << " of " << GetParam() << " ranks, "
          << chunks_per_rank << " chunks a rank";
    }
  }
}
INSTANTIATE_TEST_SUITE_P(GroupSizes, EverySchedule, ::testing::Range(1, 65));

// Printed, not asserted: the bar is 12,000 ops in under a second in a release build.
TEST(Verify, SaysHowLongTwelveThousandOpsTake) {
  const Schedule schedule =
      *BuildNamed("ring", Collective::kAllReduce, {.group_size = 56, .chunks_per_rank = 1});
  const std::size_t ops = 56 * schedule.ops_of(0).size();
  EXPECT_GE(ops, 12'000U);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(Verify(schedule), absl::OkStatus());
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  std::printf("%zu ops verified in %.3f s\n", ops, taken.count());
}

// Two ranks swap and sum: the smallest all-reduce, with a scratch copy of what is sent.
TEST(Verify, AcceptsLocalOpsScratchAndSeveralChannels) {
  std::vector<std::vector<Op>> lists;
  for (const Rank peer : {1, 0}) {
    lists.push_back({
        {.kind = OpKind::kCopy, .chunk = 2, .count = 2, .source = 0},
        {.kind = OpKind::kSend, .peer = peer, .chunk = 2, .channel = 0, .after = {0}},
        {.kind = OpKind::kSend, .peer = peer, .chunk = 3, .channel = 1, .after = {0}},
        {.kind = OpKind::kRecv, .peer = peer, .chunk = 4, .channel = 0},
        {.kind = OpKind::kRecvReduce, .peer = peer, .chunk = 1, .channel = 1, .after = {0}},
        {.kind = OpKind::kReduce, .chunk = 0, .source = 4, .after = {0, 3}},
    });
  }
  Schedule schedule = Make(Collective::kAllReduce, 2, std::move(lists));
  schedule.scratch_chunks = 3;
  EXPECT_EQ(Verify(schedule), absl::OkStatus());
}

TEST(Verify, AcceptsAnAllGatherOutOfPlace) {
  std::vector<std::vector<Op>> lists;
  for (const Rank rank : {0, 1}) {
    lists.push_back({
        {.kind = OpKind::kCopy, .chunk = 1 + rank, .source = 0},
        Send(1 - rank, 0),
        Recv(1 - rank, 2 - rank),
    });
  }
  Schedule schedule = Make(Collective::kAllGather, 1, std::move(lists));
  schedule.output_chunks = 2;
  EXPECT_EQ(Verify(schedule), absl::OkStatus());
}

TEST(Verify, NamesASendWithoutItsReceive) {
  EXPECT_THAT(WhyNot(Make(Collective::kAllReduce, 1, {{Send(1, 0)}, {}})),
              HasSubstr("rank 0, op 0 (send chunk 0 to rank 1) has no receive"));
}

TEST(Verify, NamesAReceiveWithoutItsSend) {
  EXPECT_THAT(WhyNot(Make(Collective::kAllReduce, 1, {{}, {RecvReduce(0, 0)}})),
              HasSubstr("rank 1, op 0 (recv-reduce chunk 0 from rank 0) has no send"));
}

// Each rank sends only what it received first.
TEST(Verify, NamesTheCircleOfADeadlock) {
  EXPECT_THAT(WhyNot(Make(Collective::kAllReduce, 2,
                          {{Recv(1, 0), Send(1, 1, {0})}, {Recv(0, 1), Send(0, 0, {0})}})),
              AllOf(HasSubstr("waits for ever"), HasSubstr("rank 0, op 0 (recv chunk 0"),
                    HasSubstr("rank 1, op 1 (send chunk 0")));
}

// Both send first and receive once the send has finished, which a send need not do by itself.
TEST(Verify, SeesTheDeadlockOfSendsThatWaitForTheirReceives) {
  EXPECT_THAT(WhyNot(Make(Collective::kAllGather, 2,
                          {{Send(1, 0), Recv(1, 1, {0})}, {Send(0, 1), Recv(0, 0, {0})}})),
              HasSubstr("waits for ever"));
}

TEST(Verify, NamesAChunkThatIsWrittenWhileASendOfItMayBeUnderWay) {
  EXPECT_THAT(WhyNot(Make(Collective::kAllReduce, 1,
                          {{Send(1, 0), RecvReduce(1, 0)}, {Send(0, 0), RecvReduce(0, 0)}})),
              HasSubstr("rank 0, op 1 (recv-reduce chunk 0 from rank 1) may overlap with op 0 "
                        "(send chunk 0 to rank 1): both use chunk 0"));
}

TEST(Verify, NamesAContributionThatIsCountedTwice) {
  EXPECT_THAT(
      WhyNot(Make(Collective::kReduceScatter, 2,
                  {{RecvReduce(1, 0), RecvReduce(1, 0, {0}), Send(1, 1)},
                   {Send(0, 0), Send(0, 0), RecvReduce(0, 1)}})),
      HasSubstr("rank 0, op 1 (recv-reduce chunk 0 from rank 1): chunk 0 counts a contribution "
                "twice"));
}

TEST(Verify, NamesAReductionOfDifferentPositions) {
  EXPECT_THAT(WhyNot(Make(Collective::kAllReduce, 2, {{Send(1, 1)}, {RecvReduce(0, 0)}})),
              HasSubstr("rank 1, op 0 (recv-reduce chunk 0 from rank 0): chunk 0 reduces position "
                        "1 of ranks {0} into position 0 of ranks {1}"));
}

TEST(Verify, NamesAPromiseThatIsNotKeptAndWhoWroteLast) {
  EXPECT_THAT(WhyNot(Make(Collective::kAllReduce, 1, {{Send(1, 0)}, {RecvReduce(0, 0)}})),
              HasSubstr("chunk 0 of rank 0, which no op writes: it ends with position 0 of ranks "
                        "{0}, but all-reduce promises position 0 of all ranks"));
}

TEST(Verify, RefusesOpsOutsideOfTheBuffersAndTheGroup) {
  EXPECT_THAT(WhyNot(Make(Collective::kAllReduce, 1, {{Send(1, 1)}, {Recv(0, 0)}})),
              HasSubstr("rank 0, op 0 (send chunk 1 to rank 1): chunks outside"));
  EXPECT_THAT(WhyNot(Make(Collective::kAllReduce, 1, {{Send(2, 0)}, {}})),
              HasSubstr("the peer must be another of the ranks 0 to 1"));
  EXPECT_THAT(WhyNot(Make(Collective::kAllReduce, 1, {{Send(0, 0)}, {}})),
              HasSubstr("the peer must be another"));
  EXPECT_THAT(WhyNot(Make(Collective::kAllReduce, 1, {{Send(1, 0, {0})}, {Recv(0, 0)}})),
              HasSubstr("waits for op 0, which is not before it"));
}

TEST(Verify, RefusesChunkCountsThatDoNotFitTheCollective) {
  EXPECT_THAT(WhyNot(Make(Collective::kReduceScatter, 3, {{}, {}})),
              HasSubstr("3 input and 0 output chunks do not fit reduce-scatter over 2 ranks"));
}

// Equal blocks may go through scratch; blocks of the call's sizes would not fit in it.
TEST(Verify, RefusesScratchWhereTheCallSaysHowLargeTheBlocksAre) {
  std::vector<std::vector<Op>> lists;
  for (const Rank rank : {0, 1}) {
    lists.push_back({
        {.kind = OpKind::kCopy, .chunk = 2 + rank, .source = rank},
        Send(1 - rank, 1 - rank),
        Recv(1 - rank, 4),
        {.kind = OpKind::kCopy, .chunk = 3 - rank, .source = 4, .after = {2}},
    });
  }
  for (const Collective collective : {Collective::kAllToAll, Collective::kAllToAllV}) {
    Schedule schedule = Make(collective, 2, lists);
    schedule.output_chunks = 2;
    schedule.scratch_chunks = 1;
    if (collective == Collective::kAllToAll) {
      EXPECT_EQ(Verify(schedule), absl::OkStatus());
    } else {
      EXPECT_THAT(WhyNot(schedule), HasSubstr("1 scratch chunks"));
    }
  }
}

}  // namespace
}  // namespace ranklab::collectives
