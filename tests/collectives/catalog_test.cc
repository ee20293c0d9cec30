#include "collectives/schedule/catalog.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/schedule/bandwidth.h"
#include "collectives/schedule/chain.h"
#include "collectives/schedule/hierarchical.h"
#include "collectives/schedule/in_channels.h"
#include "collectives/schedule/multi_channel_ring.h"
#include "collectives/schedule/print.h"
#include "collectives/schedule/proof.h"
#include "collectives/schedule/ring.h"
#include "core/status.h"

namespace ranklab::collectives {
namespace {

using ::testing::HasSubstr;

// Messages that must follow each other: the longest chain through what ops wait for.
int CountSteps(const Schedule& schedule) {
  const OpLists lists(schedule);
  const Pairing pairing = *PairMessages(lists);
  std::vector<int> start(static_cast<std::size_t>(lists.size()));
  std::vector<int> finish(start.size());
  const auto raise = [](int& depth, int least) {
    const bool grows = least > depth;
    depth = std::max(depth, least);
    return grows;
  };
  bool grows = true;
  while (grows) {
    grows = false;
    std::map<std::pair<Rank, std::int32_t>, std::size_t> last_in_channel;
    for (OpLists::Id id = 0; id < lists.size(); ++id) {
      const auto i = static_cast<std::size_t>(id);
      const Rank rank = lists.RankOf(id);
      const auto last = last_in_channel.find({rank, lists.at(id).channel});
      if (last != last_in_channel.end()) {
        grows |= raise(start[i], start[last->second]);
      }
      last_in_channel[{rank, lists.at(id).channel}] = i;
      for (const OpIndex earlier : lists.at(id).after) {
        grows |= raise(start[i], finish[static_cast<std::size_t>(lists.IdOf(rank, earlier))]);
      }
      grows |= raise(finish[i], start[i]);
      if (IsReceive(lists.at(id).kind)) {
        grows |= raise(finish[i], start[static_cast<std::size_t>(pairing[i])] + 1);
      }
    }
  }
  return finish.empty() ? 0 : *std::max_element(finish.begin(), finish.end());
}

std::int64_t ElementsSent(const Schedule& schedule, Rank rank, std::int64_t elements) {
  std::int64_t sent = 0;
  for (const Op& op : schedule.ops_of(rank)) {
    if (op.kind == OpKind::kSend) {
      sent += ElementsIn(schedule, rank, elements, op.chunk, op.count);
    }
  }
  return sent;
}

std::int64_t MostElementsSent(const Schedule& schedule, std::int64_t elements) {
  std::int64_t most = 0;
  for (Rank rank = 0; rank < schedule.group_size; ++rank) {
    most = std::max(most, ElementsSent(schedule, rank, elements));
  }
  return most;
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

// Worked out by hand from the rows of docs/schedules.md: S = 240, P = 8 (L = H = 3, M = 4, N = 2)
// and P = 6 (L = 2, H = 3, M = 3, N = 2).
struct Row {
  std::string_view name;
  Collective collective;
  int steps_of_8;
  int sent_of_8;
  int steps_of_6;
};
constexpr Row kRows[] = {
    {"ring", Collective::kAllReduce, 14, 420, 10},
    {"bidirectional_ring", Collective::kAllReduce, 14, 420, 10},
    {"multi_channel_ring", Collective::kAllReduce, 14, 420, 10},
    {"recursive_doubling", Collective::kAllReduce, 3, 720, 3},
    {"rabenseifner", Collective::kAllReduce, 6, 420, 7},
    {"binomial", Collective::kAllReduce, 6, 720, 4},
    {"double_binary_tree", Collective::kAllReduce, 6, 480, 6},
    {"hierarchical", Collective::kAllReduce, 8, 420, 6},
    {"ring", Collective::kReduceScatter, 7, 210, 5},
    {"recursive", Collective::kReduceScatter, 3, 210, 3},
    {"ring", Collective::kAllGather, 7, 210, 5},
    {"recursive", Collective::kAllGather, 3, 210, 3},
    {"bruck", Collective::kAllGather, 3, 210, 2},
    {"binomial", Collective::kBroadcast, 3, 720, 2},
    {"chain", Collective::kBroadcast, 7, 240, 5},
    {"binomial", Collective::kReduce, 3, 240, 2},
    {"binomial", Collective::kGather, 3, 120, 2},
    {"binomial", Collective::kScatter, 3, 210, 2},
    {"pairwise", Collective::kAllToAll, 1, 210, 1},
    {"bruck", Collective::kAllToAll, 3, 360, 3},
    {"pairwise", Collective::kAllToAllV, 1, 210, 1},
    {"dissemination", Collective::kBarrier, 3, 720, 3},
};

// Steps here are chains of causes: messages that only share a port (chain, pairwise, a tree's inner
// ranks), or that an eager network may bring before they are wanted, do not follow from each other.
// A barrier's one chunk counts as S.
TEST(Catalog, StepsAndBytesAreThoseOfTheTable) {
  std::size_t checked = 0;
  for (const Row& row : kRows) {
    SCOPED_TRACE(absl::StrFormat("%s %s", row.name, NameOf(row.collective)));
    const auto of_8 = BuildNamed(row.name, row.collective, {.group_size = 8});
    const auto of_6 = BuildNamed(row.name, row.collective, {.group_size = 6});
    ASSERT_TRUE(of_8.ok() && of_6.ok());
    EXPECT_EQ(CountSteps(*of_8), row.steps_of_8);
    EXPECT_EQ(MostElementsSent(*of_8, 240), row.sent_of_8);
    EXPECT_EQ(CountSteps(*of_6), row.steps_of_6);
    ++checked;
  }
  EXPECT_EQ(checked, Catalog().size());
}

// The largest group that is promised: lists are made, and the first step of the proof holds.
TEST(Catalog, BuildsForAThousandRanksAndMore) {
  for (const CatalogEntry& entry : Catalog()) {
    const auto schedule = entry.build({.group_size = 1024});
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    const std::size_t first = schedule->ops_of(0).size();
    EXPECT_GT(first, 0U);
    EXPECT_LE(first, 8U * 1024U) << entry.name;
    EXPECT_GT(schedule->ops_of(1023).size(), 0U);
  }
}

TEST(Catalog, RefusesOptionsThatMakeNoSense) {
  for (const CatalogEntry& entry : Catalog()) {
    for (const BuildOptions& options :
         {BuildOptions{.group_size = 0}, BuildOptions{.group_size = 4, .chunks_per_rank = 0},
          BuildOptions{.group_size = 4, .root = 4}}) {
      if (options.root == 0 || HasRoot(entry.collective)) {
        EXPECT_EQ(entry.build(options).status().code(), absl::StatusCode::kInvalidArgument)
            << entry.name << " " << NameOf(entry.collective);
      }
    }
  }
  EXPECT_EQ(BuildHierarchical({.group_size = 6, .ranks_per_node = 4}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(BuildMultiChannelRing({.group_size = 6, .channels = 0}).status().code(),
            absl::StatusCode::kInvalidArgument);
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

// Numbers of chunks and ops are int32: what they are multiplied with must leave them so.
TEST(Catalog, RefusesMoreChunksThanCanBeNumbered) {
  for (const CatalogEntry& entry : Catalog()) {
    const BuildOptions options = {.group_size = 1 << 8, .chunks_per_rank = 1 << 17};
    EXPECT_EQ(entry.build(options).status().code(), absl::StatusCode::kInvalidArgument)
        << entry.name << " " << NameOf(entry.collective);
  }
  const BuildOptions options = {.group_size = 1 << 8, .chunks_per_rank = 1 << 12, .channels = 32};
  EXPECT_TRUE(BuildRingAllReduce(options).ok());
  EXPECT_EQ(BuildMultiChannelRing(options).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Hierarchical, NodesAreAboutAsLargeAsThereAreNodes) {
  EXPECT_EQ(RanksPerNode({.group_size = 1}), 1);
  EXPECT_EQ(RanksPerNode({.group_size = 12}), 4);
  EXPECT_EQ(RanksPerNode({.group_size = 16}), 4);
  EXPECT_EQ(RanksPerNode({.group_size = 17}), 17);
  EXPECT_EQ(RanksPerNode({.group_size = 12, .ranks_per_node = 2}), 2);
  EXPECT_EQ(RanksPerNode({.group_size = 46'349}), 46'349);  // a prime; its square is above 2^31
}

// To sort out which of them waits for which would take 16 GB.
TEST(Chain, ManyPiecesCostOnlyTheirOps) {
  const Schedule schedule = *BuildChainBroadcast({.group_size = 4, .chunks_per_rank = 1 << 16});
  EXPECT_EQ(schedule.ops_of(0).size(), 1U << 18);
  EXPECT_EQ(schedule.ops_of(1).size(), 2U << 18);
  EXPECT_EQ(schedule.ops_of(3).size(), 1U << 18);
}

TEST(InChannels, AsksForAListAndItsMirrorOnceForAllSlices) {
  for (const bool mirror_odd : {false, true}) {
    Schedule schedule;
    schedule.group_size = 2;
    schedule.input_chunks = 1;
    int asked = 0;
    schedule.ops_of = [&asked](Rank rank) {
      ++asked;
      return std::vector<Op>{{.kind = rank == 0 ? OpKind::kSend : OpKind::kRecv, .peer = 1 - rank}};
    };
    const Schedule sliced =
        InChannels(std::move(schedule), {.slices = 8, .mirror_odd = mirror_odd});
    EXPECT_EQ(sliced.ops_of(0).size(), 8U);
    EXPECT_EQ(asked, mirror_odd ? 2 : 1);
  }
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
        absl::StrFormat("| `%s` | %s | %s | %s | %s |", entry.name, NameOf(entry.collective),
                        entry.pipelines ? "yes" : "no", entry.steps, entry.bytes_per_rank);
    const std::size_t begin = page.find(row);
    ASSERT_NE(begin, std::string::npos) << row;
    const std::string line = page.substr(begin, page.find('\n', begin) - begin);
    EXPECT_TRUE(line.ends_with(absl::StrFormat("| %s |", entry.source))) << line;
    EXPECT_EQ(line.find("| none") != std::string::npos, entry.cost == nullptr) << line;
  }
  std::size_t rows = 0;
  for (std::size_t at = page.find("\n| `"); at != std::string::npos;
       at = page.find("\n| `", at + 1)) {
    ++rows;
  }
  EXPECT_EQ(rows, Catalog().size()) << "a row without its algorithm";
}

TEST(Catalog, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  const auto schedule = BuildNamed("rign", Collective::kAllReduce, {.group_size = 2});
  EXPECT_EQ(schedule.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      MessageOf(schedule.status()),
      HasSubstr("no all-reduce algorithm is called \"rign\"; one of: ring, bidirectional_ring, "));
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

TEST(Print, DrawsAClusterARankAndAnEdgeAMessage) {
  const auto graph = PrintGraph(*BuildRingAllGather({.group_size = 2}));
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(*graph,
            "digraph \"ring all-gather\" {\n"
            "  rankdir=LR;\n"
            "  node [shape=box, fontname=\"monospace\"];\n"
            "  subgraph cluster_0 {\n"
            "    label=\"rank 0\";\n"
            "    r0_0 [label=\"0: send chunk 0 to rank 1\"];\n"
            "    r0_1 [label=\"1: recv chunk 1 from rank 1\"];\n"
            "  }\n"
            "  subgraph cluster_1 {\n"
            "    label=\"rank 1\";\n"
            "    r1_0 [label=\"0: send chunk 1 to rank 0\"];\n"
            "    r1_1 [label=\"1: recv chunk 0 from rank 0\"];\n"
            "  }\n"
            "  r0_0 -> r1_1 [style=bold];\n"
            "  r1_0 -> r0_1 [style=bold];\n"
            "}\n");
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
