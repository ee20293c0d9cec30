#include "collectives/schedule/catalog.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/schedule/bandwidth.h"
#include "collectives/schedule/print.h"
#include "collectives/schedule/ring.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

using ::testing::HasSubstr;

// The longest chain of messages, counting each receive as one step after what its send waited for.
int CountSteps(const Schedule& schedule) {
  std::vector<std::vector<Op>> lists;
  for (Rank rank = 0; rank < schedule.group_size; ++rank) {
    lists.push_back(schedule.ops_of(rank));
  }
  // In a ring every rank's list has the same form, so rank r's k-th receive follows the k-th send
  // of rank r-1, which has the same depth as its own k-th send.
  std::vector<int> depth(lists[0].size());
  std::vector<int> send_depths;
  int deepest = 0;
  std::size_t receives = 0;
  for (std::size_t i = 0; i < lists[0].size(); ++i) {
    for (const OpIndex other : lists[0][i].after) {
      if (IsReceive(lists[0][static_cast<std::size_t>(other)].kind)) {
        depth[i] = std::max(depth[i], depth[static_cast<std::size_t>(other)]);
      }
    }
    if (IsReceive(lists[0][i].kind)) {
      depth[i] = std::max(depth[i], send_depths.at(receives++) + 1);
    } else {
      send_depths.push_back(depth[i]);
    }
    deepest = std::max(deepest, depth[i]);
  }
  return deepest;
}

std::int64_t ElementsSent(const Schedule& schedule, Rank rank, std::int64_t elements) {
  std::int64_t sent = 0;
  for (const Op& op : schedule.ops_of(rank)) {
    if (op.kind == OpKind::kSend) {
      sent += ChunkBegin(elements, op.chunk + op.count, schedule.input_chunks) -
              ChunkBegin(elements, op.chunk, schedule.input_chunks);
    }
  }
  return sent;
}

TEST(Ring, StepsAndBytesAreThoseOfTheClosedForms) {
  for (const int ranks : {1, 2, 3, 4, 7, 8, 16, 33}) {
    const std::int64_t elements = 1000 * ranks;
    const int rounds = ranks - 1;
    const Schedule all_reduce = *BuildRingAllReduce({.group_size = ranks});
    const Schedule reduce_scatter = *BuildRingReduceScatter({.group_size = ranks});
    const Schedule all_gather = *BuildRingAllGather({.group_size = ranks});
    EXPECT_EQ(CountSteps(all_reduce), 2 * rounds);
    EXPECT_EQ(CountSteps(reduce_scatter), rounds);
    EXPECT_EQ(CountSteps(all_gather), rounds);
    for (Rank rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(ElementsSent(all_reduce, rank, elements), 2 * elements * rounds / ranks);
      EXPECT_EQ(ElementsSent(reduce_scatter, rank, elements), elements * rounds / ranks);
      EXPECT_EQ(ElementsSent(all_gather, rank, elements), elements * rounds / ranks);
    }
  }
}

TEST(Ring, ALargeGroupCostsOnlyTheListThatIsAskedFor) {
  const Schedule schedule = *BuildRingAllReduce({.group_size = 131'072});
  EXPECT_EQ(schedule.ops_of(77'777).size(), 4U * 131'071U);
}

TEST(Ring, RefusesEmptyGroupsAndEmptyBlocks) {
  EXPECT_EQ(BuildRingAllReduce({.group_size = 0}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(BuildRingAllGather({.group_size = 4, .chunks_per_rank = 0}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      BuildRingReduceScatter({.group_size = 1 << 20, .chunks_per_rank = 1 << 20}).status().code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(Chunks, CoverTheBufferInOrderAndDifferByAtMostOneElement) {
  for (const std::int64_t elements : {0LL, 1LL, 6LL, 7LL, 65'537LL, 5LL << 30}) {
    for (const std::int32_t chunks : {1, 2, 7, 64, 1 << 20}) {
      EXPECT_EQ(ChunkBegin(elements, 0, chunks), 0);
      EXPECT_EQ(ChunkBegin(elements, chunks, chunks), elements);
      for (const std::int32_t chunk : {0, chunks / 2, chunks - 1}) {
        const std::int64_t size =
            ChunkBegin(elements, chunk + 1, chunks) - ChunkBegin(elements, chunk, chunks);
        EXPECT_GE(size, elements / chunks);
        EXPECT_LE(size, elements / chunks + 1);
      }
    }
  }
}

TEST(Catalog, BuildsEveryEntryUnderItsNameAndCollective) {
  for (const CatalogEntry& entry : Catalog()) {
    const auto schedule = BuildNamed(entry.name, entry.collective, {.group_size = 6});
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    EXPECT_EQ(schedule->name, entry.name);
    EXPECT_EQ(schedule->collective, entry.collective);
    EXPECT_EQ(schedule->group_size, 6);
  }
}

TEST(Catalog, StandsRowByRowInTheDocumentation) {
  std::ifstream file("docs/schedules.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const CatalogEntry& entry : Catalog()) {
    const std::string row =
        absl::StrFormat("| `%s` | %s | %s | %s |", entry.name, NameOf(entry.collective),
                        entry.steps, entry.bytes_per_rank);
    const std::size_t begin = page.find(row);
    ASSERT_NE(begin, std::string::npos) << row;
    EXPECT_THAT(page.substr(begin, page.find('\n', begin) - begin),
                HasSubstr(std::string(entry.source)));
  }
}

TEST(Catalog, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  const auto schedule = BuildNamed("rign", Collective::kAllReduce, {.group_size = 2});
  EXPECT_EQ(schedule.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(schedule.status()),
              HasSubstr("no all-reduce algorithm is called \"rign\"; one of: ring"));
}

TEST(Print, ShowsEachRanksOpsWithWhatTheyWaitFor) {
  EXPECT_EQ(PrintSchedule(*BuildRingAllReduce({.group_size = 2})),
            "ring all-reduce: 2 ranks, 2 input, 0 output, 0 scratch chunks\n"
            "rank 0\n"
            "  0: send chunk 1 to rank 1\n"
            "  1: recv-reduce chunk 0 from rank 1\n"
            "  2: send chunk 0 to rank 1, after 1\n"
            "  3: recv chunk 1 from rank 1, after 0\n"
            "rank 1\n"
            "  0: send chunk 0 to rank 0\n"
            "  1: recv-reduce chunk 1 from rank 0\n"
            "  2: send chunk 1 to rank 0, after 1\n"
            "  3: recv chunk 0 from rank 0, after 0\n");
}

// 1 GiB in 4.75 ms over 8 ranks.
TEST(Bandwidth, IsThatOfNcclTests) {
  const Nanos time = std::chrono::microseconds(4750);
  EXPECT_NEAR(AlgBandwidth(1 << 30, time).bytes_per_second, 226.0509103e9, 100);
  EXPECT_NEAR(BusBandwidth(Collective::kAllReduce, 8, 1 << 30, time).bytes_per_second,
              395.5890931e9, 100);
  EXPECT_NEAR(BusBandwidth(Collective::kAllGather, 8, 1 << 30, time).bytes_per_second,
              226.0509103e9 * 7 / 8, 100);
  EXPECT_EQ(BusBandwidth(Collective::kAllReduce, 1, 1 << 30, time).bytes_per_second, 0);
}

}  // namespace
}  // namespace ranklab::collectives
