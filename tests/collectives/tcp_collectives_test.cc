// A handful of collectives over real sockets of this machine, each rank with a loop and thread of
// its own.
#include <chrono>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/communicator.h"
#include "collectives/cpu_reducer.h"
#include "core/status.h"
#include "tests/transport/tcp_node.h"

namespace ranklab::collectives {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using transport::Ending;
using transport::TcpNode;

constexpr std::uint32_t kGeneration = 5;

struct CountingTrace final : TraceSink {
  void Record(const Span&) override {}
  void Record(const CollectiveSpan&) override { ++collectives; }
  void Record(const CounterSample&) override {}

  int collectives = 0;
};

// One rank. Its communicator lives on the node's loop.
struct Member {
  explicit Member(Rank rank) : node({Role::kWorker, rank}) {}
  ~Member() {
    if (communicator != nullptr) {
      node.loop().RunAndWait([this] { communicator.reset(); });
    }
    node.Close();
  }

  TcpNode node;
  CpuReducer reducer;
  CountingTrace trace;
  std::unique_ptr<Communicator> communicator;
};

class TcpCollectives : public ::testing::Test {
 protected:
  void Form(int ranks, const CommunicatorOptions& options) {
    ProcessGroup world{.id = 0, .members = {}, .my_rank = 0, .generation = kGeneration};
    for (Rank rank = 0; rank < ranks; ++rank) {
      members_.emplace_back(rank);
      world.members.push_back(rank);
    }
    std::deque<Ending> ready(members_.size());
    for (std::size_t r = 0; r < members_.size(); ++r) {
      std::vector<transport::WirePeer> peers;
      for (std::size_t other = 0; other < members_.size(); ++other) {
        if (other != r) {
          peers.push_back(members_[other].node.AsPeer());
        }
      }
      members_[r].node.Open(std::move(peers), ready[r], std::chrono::seconds(20),
                            {.generation = kGeneration});
    }
    for (std::size_t r = 0; r < members_.size(); ++r) {
      ASSERT_EQ(ready[r].Wait(), absl::OkStatus());
      Member& member = members_[r];
      member.node.loop().RunAndWait([&] {
        world.my_rank = static_cast<Rank>(r);
        auto made = Communicator::Make(
            {member.node.loop(), member.node.messenger(), member.reducer, member.trace}, world,
            options);
        ASSERT_TRUE(made.ok()) << made.status();
        member.communicator = *std::move(made);
      });
    }
  }

  void Begin(std::size_t rank, std::vector<float>& buffer, Ending& ending) {
    Member& member = members_[rank];
    member.node.loop().RunAndWait([&] {
      member.communicator->AllReduce(compute::HostView(std::span(buffer)), compute::ReduceOp::kSum,
                                     {}, ending.Done());
    });
  }

  std::deque<Member> members_;
};

TEST_F(TcpCollectives, SumSmallAndLargeBuffersSeveralAtATime) {
  constexpr int kRanks = 4;
  Form(kRanks, {.chunks_per_rank = 3});
  const std::vector<std::size_t> sizes = {0, 1, 1009, 65'536, 1'000'003};
  std::deque<std::vector<float>> buffers;
  std::deque<Ending> endings;
  for (const std::size_t size : sizes) {
    for (std::size_t r = 0; r < kRanks; ++r) {
      buffers.emplace_back(size, static_cast<float>(r + 1));
      Begin(r, buffers.back(), endings.emplace_back());
    }
  }
  for (std::size_t i = 0; i < endings.size(); ++i) {
    ASSERT_EQ(endings[i].Wait(), absl::OkStatus());
    EXPECT_THAT(buffers[i], Each(10.0F)) << buffers[i].size() << " elements";
  }
  for (Member& member : members_) {
    member.node.loop().RunAndWait(
        [&] { EXPECT_EQ(member.trace.collectives, static_cast<int>(sizes.size())); });
  }
}

// Rank 2 never enters, and its process ends. Its neighbours see that; the others see them go.
TEST_F(TcpCollectives, EndOnEveryRankWhenAPeerIsGone) {
  constexpr std::size_t kRanks = 4;
  Form(kRanks, {});
  std::vector<std::vector<float>> buffers(kRanks, std::vector<float>(1'000'000, 1.0F));
  std::deque<Ending> endings(kRanks);
  for (const std::size_t r : {0, 1, 3}) {
    Begin(r, buffers[r], endings[r]);
  }
  members_[2].node.Close();
  for (const std::size_t r : {0, 1, 3}) {
    const absl::Status status = endings[r].Wait();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(MessageOf(status), HasSubstr("all-reduce 1 of group 0"));
    EXPECT_THAT(MessageOf(status), AnyOf(HasSubstr("worker 1"), HasSubstr("worker 2"),
                                         HasSubstr("worker 3"), HasSubstr("worker 0")));
  }
}

}  // namespace
}  // namespace ranklab::collectives
