#include "collectives/communicator.h"

#include <cmath>
#include <cstring>
#include <deque>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/schedule/catalog.h"
#include "compute/operations.h"
#include "core/random.h"
#include "core/status.h"
#include "fabric/cost.h"
#include "tests/collectives/collective_cluster.h"

namespace ranklab::collectives {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

using Buffers = std::vector<std::vector<float>>;

Buffers RandomBuffers(int ranks, std::int64_t elements, std::uint64_t seed) {
  Random random(seed);
  Buffers buffers(static_cast<std::size_t>(ranks));
  for (std::vector<float>& buffer : buffers) {
    for (std::int64_t i = 0; i < elements; ++i) {
      buffer.push_back(static_cast<float>(random.Normal()));
    }
  }
  return buffers;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// All ranks all-reduce at once.
void AllReduce(CollectiveCluster& cluster, Buffers& buffers,
               const CommunicatorOptions& options = {}) {
  const auto communicators = cluster.JoinWorld(options);
  std::vector<Ending> endings(buffers.size());
  for (std::size_t r = 0; r < buffers.size(); ++r) {
    communicators[r]->AllReduce(compute::HostView(std::span(buffers[r])), compute::ReduceOp::kSum,
                                {.step = 3, .bucket = 2}, endings[r].On(cluster.loop()));
  }
  cluster.loop().Run();
  for (const Ending& ending : endings) {
    ASSERT_TRUE(ending.ok());
  }
}

// Sums of 16 bits are rounded on their way, in an order that an algorithm has for all ranks alike.
TEST(Communicator, In16BitsAllRanksEndWithTheSameBitsNearTheSum) {
  constexpr int kRanks = 5;
  constexpr std::int64_t kElements = 1013;
  for (const CatalogEntry& entry : Catalog()) {
    if (entry.collective != Collective::kAllReduce) {
      continue;
    }
    Buffers brought = RandomBuffers(kRanks, kElements, 11);
    std::vector<std::vector<std::uint16_t>> rounded(kRanks);
    const auto view = [&](std::size_t r) {
      return compute::TensorView{reinterpret_cast<std::byte*>(rounded[r].data()),
                                 compute::DType::kBFloat16,
                                 {kElements, 1, 1, 1},
                                 nullptr};
    };
    CollectiveCluster cluster({.ranks = kRanks});
    const auto communicators = cluster.JoinWorld({.algorithm = std::string(entry.name)});
    std::vector<Ending> endings(kRanks);
    for (std::size_t r = 0; r < kRanks; ++r) {
      rounded[r].resize(kElements);
      ASSERT_TRUE(compute::Convert(compute::HostView(std::span(brought[r])), view(r)).ok());
      communicators[r]->AllReduce(view(r), compute::ReduceOp::kSum, {},
                                  endings[r].On(cluster.loop()));
    }
    cluster.loop().Run();
    std::vector<float> found(kElements);
    ASSERT_TRUE(compute::Convert(view(0), compute::HostView(std::span(found))).ok());
    for (std::size_t r = 0; r < kRanks; ++r) {
      ASSERT_TRUE(endings[r].ok()) << entry.name;
      EXPECT_EQ(rounded[r], rounded[0]) << entry.name << ", rank " << r;
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
      double sum = 0;
      double magnitudes = 0;
      for (const std::vector<float>& buffer : brought) {
        sum += buffer[i];
        magnitudes += std::abs(buffer[i]);
      }
      // Each addend and each sum is rounded to 8 significant bits.
      ASSERT_NEAR(found[i], sum, 2 * kRanks * magnitudes / 512) << entry.name;
    }
  }
}

TEST(Communicator, ARingReducesInItsFixedOrderSoThatAllRanksEndWithTheSameBits) {
  constexpr int kRanks = 5;
  constexpr std::int64_t kElements = 1013;
  const Buffers brought = RandomBuffers(kRanks, kElements, 11);
  // Block r is summed in the order r+1, r+2, ..., r, each rank adding what it receives to its own.
  std::vector<float> expected(kElements);
  for (int block = 0; block < kRanks; ++block) {
    for (auto i = static_cast<std::size_t>(kElements * block / kRanks);
         i < static_cast<std::size_t>(kElements * (block + 1) / kRanks); ++i) {
      float sum = brought[static_cast<std::size_t>((block + 1) % kRanks)][i];
      for (int k = 2; k <= kRanks; ++k) {
        sum = brought[static_cast<std::size_t>((block + k) % kRanks)][i] + sum;
      }
      expected[i] = sum;
    }
  }
  for (const std::uint64_t seed : {1, 2}) {
    Buffers buffers = brought;
    CollectiveCluster cluster({.ranks = kRanks,
                               .port = fabric::LinkSpec{.alpha = microseconds(1),
                                                        .bandwidth = {1e9},
                                                        .jitter = microseconds(100)},
                               .seed = seed});
    AllReduce(cluster, buffers);
    for (const std::vector<float>& buffer : buffers) {
      EXPECT_TRUE(SameBits(buffer, expected)) << "seed of the jitter " << seed;
    }
  }
}

TEST(Communicator, MaximumAndMinimumAreReducedToo) {
  CollectiveCluster cluster({.ranks = 3});
  const auto communicators = cluster.JoinWorld();
  std::vector<std::vector<std::int32_t>> largest = {{1, -5, 7}, {4, -6, 7}, {2, -4, 8}};
  auto smallest = largest;
  std::vector<Ending> endings(6);
  for (std::size_t r = 0; r < 3; ++r) {
    communicators[r]->AllReduce(compute::HostView(std::span(largest[r])), compute::ReduceOp::kMax,
                                {}, endings[r].On(cluster.loop()));
    communicators[r]->AllReduce(compute::HostView(std::span(smallest[r])), compute::ReduceOp::kMin,
                                {}, endings[3 + r].On(cluster.loop()));
  }
  cluster.loop().Run();
  for (std::size_t r = 0; r < 3; ++r) {
    ASSERT_TRUE(endings[r].ok() && endings[3 + r].ok());
    EXPECT_THAT(largest[r], ::testing::ElementsAre(4, -4, 8));
    EXPECT_THAT(smallest[r], ::testing::ElementsAre(1, -6, 7));
  }
}

TEST(Communicator, AReduceScatterAndAnAllGatherMakeAnAllReduce) {
  constexpr int kRanks = 4;
  const Buffers brought = RandomBuffers(kRanks, 103, 5);
  Buffers whole = brought;
  CollectiveCluster cluster({.ranks = kRanks});
  AllReduce(cluster, whole);

  Buffers halves = brought;
  const auto communicators = cluster.JoinWorld();
  std::vector<Ending> endings(2 * kRanks);
  for (std::size_t r = 0; r < kRanks; ++r) {
    const compute::TensorView view = compute::HostView(std::span(halves[r]));
    communicators[r]->ReduceScatter(
        view, compute::ReduceOp::kSum, {},
        [&, r, view,
         scattered = endings[kRanks + r].On(cluster.loop())](absl::Status status) mutable {
          scattered(std::move(status));
          communicators[r]->AllGather(view, {}, endings[r].On(cluster.loop()));
        });
  }
  cluster.loop().Run();
  for (std::size_t r = 0; r < kRanks; ++r) {
    ASSERT_TRUE(endings[r].ok() && endings[kRanks + r].ok());
    EXPECT_TRUE(SameBits(halves[r], whole[r]));
    EXPECT_EQ(communicators[r]->next_sequence(), 3U);
  }
}

// Six workers: the even ones, the odd ones and all together, with three calls of each under way.
TEST(Communicator, GroupsAndCallsOverlapWithoutMixing) {
  CollectiveCluster cluster({.ranks = 6});
  const std::vector<std::vector<Rank>> groups = {{0, 1, 2, 3, 4, 5}, {4, 0, 2}, {1, 3, 5}};
  std::vector<std::unique_ptr<Communicator>> communicators;
  std::deque<std::vector<float>> buffers;
  std::deque<Ending> endings;
  std::vector<float> expected;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t r = 0; r < groups[g].size(); ++r) {
      const ProcessGroup group{.id = static_cast<std::uint32_t>(g),
                               .members = groups[g],
                               .my_rank = static_cast<Rank>(r),
                               .generation = 7};
      communicators.push_back(cluster.Join(groups[g][r], group, {.chunks_per_rank = 2}));
      for (int call = 0; call < 3; ++call) {
        buffers.emplace_back(1000, static_cast<float>(100 * call + groups[g][r]));
        float sum = 0;
        for (const Rank member : groups[g]) {
          sum += static_cast<float>(100 * call + member);
        }
        expected.push_back(sum);
        communicators.back()->AllReduce(compute::HostView(std::span(buffers.back())),
                                        compute::ReduceOp::kSum, {.bucket = call},
                                        endings.emplace_back().On(cluster.loop()));
      }
    }
  }
  cluster.loop().Run();
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    ASSERT_TRUE(endings[i].ok());
    EXPECT_THAT(buffers[i], ::testing::Each(expected[i]));
  }
}

// Receives are posted ahead of the sends they belong to, so that credit costs no time, and nothing
// but the ring's own steps shows on the modelled network. Model M2; the reduction is free.
TEST(Communicator, AShapedRingTakesTheTimeOfItsClosedForm) {
  const fabric::LinkSpec port{.alpha = microseconds(5), .bandwidth = {1e9}};
  for (const int ranks : {2, 3, 4, 8}) {
    for (const std::int64_t elements : {24, 24 * 1000, 24 * 50'000}) {  // small and large
      CollectiveCluster cluster({.ranks = ranks, .port = port});
      Buffers buffers(static_cast<std::size_t>(ranks),
                      std::vector<float>(static_cast<std::size_t>(elements)));
      AllReduce(cluster, buffers);
      const Nanos expected = fabric::RingAllReduceTime(port, ranks, 4 * elements);
      for (const CollectiveSpan& span : cluster.trace().spans) {
        EXPECT_NEAR(static_cast<double>((span.left - span.entered).count()),
                    static_cast<double>(expected.count()), 2 * ranks)
            << ranks << " ranks, " << elements << " elements";
      }
    }
  }
}

// Two ranks, blocks of 3.2 MB: by size that is 8 pieces.
TEST(Communicator, MoreChunksARankHideTheReductionBehindTheWire) {
  std::map<int, Nanos> slowest;
  std::map<int, Buffers> sums;
  for (const int chunks_per_rank : {1, 8, 0}) {
    CollectiveCluster cluster(
        {.ranks = 2,
         .port = fabric::LinkSpec{.alpha = microseconds(1), .bandwidth = {1e9}},
         .reduction_seconds_per_byte = 0.5e-9});  // of both ranks, one after the other
    Buffers buffers = RandomBuffers(2, 1'600'000, 5);
    AllReduce(cluster, buffers, {.chunks_per_rank = chunks_per_rank});
    slowest[chunks_per_rank] = cluster.trace().spans.back().left;
    sums[chunks_per_rank] = buffers;
  }
  // 6.4 ms on the wire and 3.2 ms of reducing in a row, or all but the last eighth of it hidden.
  EXPECT_GT(slowest[1], microseconds(9500));
  EXPECT_LT(slowest[8], microseconds(7500));
  EXPECT_EQ(slowest[0], slowest[8]);
  EXPECT_TRUE(SameBits(sums[0][0], sums[1][0]));
}

// Nobody leaves before the late rank has come, and the last leaves as if all had come that late.
// The late rank itself waits for nobody: its first message is there at once.
TEST(Communicator, StampsTellTheLateRankFromThoseThatWait) {
  constexpr int kRanks = 4;
  const Nanos late = microseconds(10'000);
  CollectiveCluster cluster(
      {.ranks = kRanks, .port = fabric::LinkSpec{.alpha = microseconds(5), .bandwidth = {1e9}}});
  const auto communicators = cluster.JoinWorld();
  Buffers buffers = RandomBuffers(kRanks, 4000, 1);
  std::vector<Ending> endings(kRanks);
  for (std::size_t r = 0; r < kRanks; ++r) {
    cluster.loop().RunAt(r == 2 ? late : Nanos::zero(), [&, r] {
      communicators[r]->AllReduce(compute::HostView(std::span(buffers[r])), compute::ReduceOp::kSum,
                                  {.step = 9, .bucket = 4}, endings[r].On(cluster.loop()));
    });
  }
  cluster.loop().Run();
  const Nanos alone =
      fabric::RingAllReduceTime({.alpha = microseconds(5), .bandwidth = {1e9}}, kRanks, 16'000);
  ASSERT_EQ(cluster.trace().spans.size(), 4U);
  Nanos last_left{};
  for (const CollectiveSpan& span : cluster.trace().spans) {
    EXPECT_EQ(span.algorithm, "ring");
    EXPECT_EQ(span.sequence, 1U);
    EXPECT_EQ(span.step, 9);
    EXPECT_EQ(span.bucket, 4);
    EXPECT_EQ(span.bytes, 16'000);
    EXPECT_EQ(span.entered, span.rank == 2 ? late : Nanos::zero());
    EXPECT_LE(span.entered, span.first_byte_in);
    EXPECT_LE(span.first_byte_in, span.last_byte_out);
    EXPECT_LE(span.last_byte_out, span.left);
    EXPECT_GT(span.left, late);
    EXPECT_LE(span.left, late + alone);
    last_left = std::max(last_left, span.left);
    if (span.rank == 2) {
      EXPECT_EQ(span.first_byte_in, late);
    } else if (span.rank == 3) {
      EXPECT_GT(span.first_byte_in, late) << "it is the late rank's neighbour";
    }
  }
  EXPECT_EQ(last_left, late + alone);
}

TEST(Communicator, BuffersWithoutBytesMoveOnlyTheirSizes) {
  CollectiveCluster cluster(
      {.ranks = 3, .port = fabric::LinkSpec{.alpha = microseconds(5), .bandwidth = {1e9}}});
  const auto communicators = cluster.JoinWorld();
  std::vector<Ending> endings(3);
  const std::int64_t elements = 3'000'000;
  for (std::size_t r = 0; r < 3; ++r) {
    communicators[r]->AllReduce({nullptr, compute::DType::kFloat32, {elements, 1, 1, 1}, nullptr},
                                compute::ReduceOp::kSum, {}, endings[r].On(cluster.loop()));
  }
  cluster.loop().Run();
  for (const Ending& ending : endings) {
    ASSERT_TRUE(ending.ok());
    EXPECT_NEAR(static_cast<double>(ending.at.count()), 4 * (5e3 + 4e6), 10.0);
  }
}

TEST(Communicator, MayGoBeforeItsCalls) {
  CollectiveCluster cluster({.ranks = 2});
  auto communicators = cluster.JoinWorld();
  Buffers buffers = {{1, 2, 3}, {10, 20, 30}};
  std::vector<Ending> endings(2);
  for (std::size_t r = 0; r < 2; ++r) {
    communicators[r]->AllReduce(compute::HostView(std::span(buffers[r])), compute::ReduceOp::kSum,
                                {}, endings[r].On(cluster.loop()));
    EXPECT_EQ(endings[r].times, 0) << "never within the call";
  }
  communicators.clear();
  cluster.loop().Run();
  EXPECT_TRUE(endings[0].ok() && endings[1].ok());
  EXPECT_THAT(buffers[0], ::testing::ElementsAre(11, 22, 33));
}

TEST(Communicator, RefusesGroupsAlgorithmsAndTimeoutsThatMakeNoSense) {
  CollectiveCluster cluster({.ranks = 3});
  const auto why_not = [&](ProcessGroup group, const CommunicatorOptions& options) {
    const auto made = Communicator::Make(cluster.Deps(1), group, options);
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
    return MessageOf(made.status());
  };
  EXPECT_THAT(why_not(cluster.World(1), {.algorithm = "rign"}), HasSubstr("one of: ring, "));
  EXPECT_THAT(why_not(cluster.World(1), {.chunks_per_rank = -1}), HasSubstr("at least 1"));
  EXPECT_THAT(why_not(cluster.World(1), {.timeout = Nanos::zero()}), HasSubstr("timeout"));
  EXPECT_THAT(why_not(cluster.World(2), {}),
              HasSubstr("its rank 2 is worker 2, but the transport is that of worker 1"));
  EXPECT_THAT(why_not({.id = 4, .members = {1, 2, 1}, .my_rank = 0}, {}),
              HasSubstr("group 4 has worker 1 twice"));
  EXPECT_THAT(why_not({.members = {0, 1}, .my_rank = 2}, {}), HasSubstr("rank 2 of 2 members"));
}

}  // namespace
}  // namespace ranklab::collectives
