// How collectives end when something goes wrong: on every rank, once, saying why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/status.h"
#include "tests/collectives/collective_cluster.h"

namespace ranklab::collectives {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Nanos kTimeout = seconds(30);

// Four workers with buffers of `sizes` elements that all-reduce; a negative size stays away.
class CollectiveFailures : public ::testing::Test {
 protected:
  void Begin(const std::vector<std::int64_t>& sizes) {
    communicators_ = cluster_.JoinWorld({.timeout = kTimeout});
    for (std::size_t r = 0; r < sizes.size(); ++r) {
      if (sizes[r] < 0) {
        continue;
      }
      buffers_[r].resize(static_cast<std::size_t>(sizes[r]), 1.0F);
      communicators_[r]->AllReduce(compute::HostView(std::span(buffers_[r])),
                                   compute::ReduceOp::kSum, {}, endings_[r].On(cluster_.loop()));
    }
  }

  std::string WhyOf(std::size_t rank) {
    EXPECT_EQ(endings_[rank].times, 1) << "rank " << rank;
    return endings_[rank].times == 0 ? "" : endings_[rank].status->ToString();
  }
  absl::StatusCode CodeOf(std::size_t rank) { return endings_[rank].status->code(); }

  CollectiveCluster cluster_{
      {.ranks = 4, .port = fabric::LinkSpec{.alpha = microseconds(5), .bandwidth = {1e9}}}};
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::vector<float> buffers_[4];
  Ending endings_[4];
};

TEST_F(CollectiveFailures, ALostPeerEndsEveryOtherRankAtOnce) {
  Begin({1'000'000, 1'000'000, 1'000'000, 1'000'000});
  cluster_.loop().RunAt(milliseconds(2), [&] { cluster_.Kill(2); });
  cluster_.loop().RunUntil(milliseconds(3));
  for (const std::size_t rank : {0, 1, 3}) {
    EXPECT_THAT(WhyOf(rank), AllOf(HasSubstr("UNAVAILABLE"), HasSubstr("all-reduce 1 of group 0")));
    EXPECT_LT(endings_[rank].at, milliseconds(3));
  }
  // Its neighbours name it and what they were doing; the others name the neighbours that left.
  EXPECT_THAT(WhyOf(1), HasSubstr("worker 2"));
  EXPECT_THAT(WhyOf(3), AllOf(HasSubstr("worker 2"), HasSubstr("chunk"), HasSubstr("op ")));
}

TEST_F(CollectiveFailures, ARankThatStaysAwayIsNamedWhenTheDeadlinePasses) {
  Begin({40, 40, 40, -1});
  cluster_.loop().Run();
  EXPECT_THAT(WhyOf(0),
              HasSubstr("all-reduce 1 of group 0: waited 30 s for worker 3 (recv-reduce chunk 2 "
                        "from rank 3, op 1)"));
  EXPECT_EQ(CodeOf(0), absl::StatusCode::kDeadlineExceeded);
  for (const std::size_t rank : {1, 2}) {
    EXPECT_NE(CodeOf(rank), absl::StatusCode::kOk) << WhyOf(rank);
    EXPECT_EQ(endings_[rank].at, kTimeout);
  }
}

// Large messages wait for credit, so the sender too knows whom it waits for.
TEST_F(CollectiveFailures, ASendThatFindsNoReceiverIsNamedToo) {
  Begin({1'000'000, 1'000'000, 1'000'000, -1});
  cluster_.loop().RunUntil(kTimeout - Nanos(1));
  communicators_[2]->OnFailure([&](const absl::Status& status) {
    EXPECT_THAT(MessageOf(status), HasSubstr("worker 3 (send chunk"));
    cluster_.messenger(2).Abort(status);
  });
  cluster_.loop().Run();
  EXPECT_EQ(endings_[2].times, 1);
}

// A posted receive cannot be taken back: the failure is told at once, the buffers are given back
// when the owner has aborted the transport.
TEST_F(CollectiveFailures, DoneWaitsForTheBuffersButTheFailureIsToldAtOnce) {
  Begin({1'000'000, 1'000'000, 1'000'000, -1});
  std::vector<absl::Status> failures;
  for (const Rank rank : {0, 1, 2}) {
    communicators_[static_cast<std::size_t>(rank)]->OnFailure(
        [&](const absl::Status& status) { failures.push_back(status); });
  }
  cluster_.loop().RunUntil(kTimeout + seconds(1));
  ASSERT_EQ(failures.size(), 3U);
  for (const Rank rank : {0, 1, 2}) {
    EXPECT_EQ(failures[static_cast<std::size_t>(rank)].code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(endings_[rank].times, 0);
    cluster_.messenger(rank).Abort(Aborted("the generation is over"));
  }
  cluster_.loop().Run();
  for (const std::size_t rank : {0, 1, 2}) {
    EXPECT_THAT(WhyOf(rank), HasSubstr("waited 30 s"));
  }
}

TEST_F(CollectiveFailures, BuffersOfAnotherSizeEndEveryRank) {
  Begin({400, 404, 400, 400});
  cluster_.loop().Run();
  EXPECT_EQ(CodeOf(2), absl::StatusCode::kInvalidArgument) << WhyOf(2);
  EXPECT_THAT(WhyOf(2), AllOf(HasSubstr("worker 1"), HasSubstr("404 bytes"), HasSubstr("400")));
  for (const std::size_t rank : {0, 1, 3}) {
    EXPECT_FALSE(endings_[rank].ok()) << WhyOf(rank);
    EXPECT_LT(endings_[rank].at, seconds(1)) << WhyOf(rank);
  }
}

TEST_F(CollectiveFailures, ABufferThatIsEmptyElsewhereEndsEveryRank) {
  Begin({400, 400, 0, 400});
  cluster_.loop().Run();
  for (const std::size_t rank : {0, 1, 2, 3}) {
    EXPECT_FALSE(endings_[rank].ok()) << WhyOf(rank);
    EXPECT_LT(endings_[rank].at, seconds(1)) << WhyOf(rank);
  }
}

// One side holds a large message back for a credit that the other never gives.
TEST_F(CollectiveFailures, SmallAgainstLargeBuffersEndByTheDeadline) {
  Begin({1'000'000, 40, 1'000'000, 1'000'000});
  cluster_.loop().Run();
  for (const std::size_t rank : {0, 1, 2, 3}) {
    EXPECT_FALSE(endings_[rank].ok()) << WhyOf(rank);
    EXPECT_LE(endings_[rank].at, kTimeout) << WhyOf(rank);
  }
}

TEST_F(CollectiveFailures, CallsAfterTheAbortEndAtOnce) {
  communicators_ = cluster_.JoinWorld();
  cluster_.messenger(1).Abort(Aborted("the generation is over"));
  buffers_[1].resize(100);
  communicators_[1]->AllReduce(compute::HostView(std::span(buffers_[1])), compute::ReduceOp::kSum,
                               {}, endings_[1].On(cluster_.loop()));
  cluster_.loop().RunUntil(milliseconds(1));
  EXPECT_EQ(CodeOf(1), absl::StatusCode::kAborted);
}

}  // namespace
}  // namespace ranklab::collectives
