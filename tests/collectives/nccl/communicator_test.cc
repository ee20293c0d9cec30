#include "collectives/nccl/communicator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/nccl/load.h"
#include "collectives/nccl/shared_gpu.h"
#include "core/status.h"
#include "core/status_latch.h"
#include "tests/collectives/nccl/fake_nccl.h"

namespace ranklab::collectives::nccl {
namespace {

using compute::HostView;
using compute::ReduceOp;
using compute::Slice;
using compute::TensorView;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// No time passes but in pauses, so that a deadline comes at once and one that should not never
// does.
class CountedPatience final : public Patience {
 public:
  Nanos Now() override { return now_; }
  bool Pause(Nanos duration) override {
    now_ += std::max(duration, Nanos(std::chrono::milliseconds(1)));
    return false;
  }

 private:
  Nanos now_{};
};

// Ranks that wait for one another, as long as it takes; until the coordinator ends it.
class EndlessPatience final : public Patience {
 public:
  explicit EndlessPatience(const StatusLatch& aborted) : aborted_(aborted) {}
  Nanos Now() override { return Nanos::zero(); }
  bool Pause(Nanos) override { return aborted_.SleepUnlessSet(std::chrono::microseconds(50)); }

 private:
  const StatusLatch& aborted_;
};

// A rank as its process: library, stream, memory, a thread while it runs.
struct RankOfTest {
  RankOfTest(FakeWorld& world, const StatusLatch& aborted) : api(world), patience(aborted) {}

  absl::Status Wait(FakeWorld& world) {
    return communicator->Wait([&] { return absl::StatusOr<bool>(world.IsFinished(stream)); },
                              "the test");
  }

  FakeNccl api;
  EndlessPatience patience;
  FakeStream stream;
  std::unique_ptr<Communicator> communicator;
  std::vector<float> values;
  absl::Status status;
};

class NcclCommunicator : public ::testing::Test {
 protected:
  // All ranks at once, each on a thread of its own; their statuses are in `ranks_`.
  void OnEach(const std::function<absl::Status(Rank, RankOfTest&)>& run) {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      threads.emplace_back([&, i] { ranks_[i]->status = run(static_cast<Rank>(i), *ranks_[i]); });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }

  void Form(int ranks) {
    for (int i = 0; i < ranks; ++i) {
      ranks_.push_back(std::make_unique<RankOfTest>(world_, aborted_));
    }
    UniqueId id;
    ASSERT_EQ(ranks_[0]->api.MakeUniqueId(id), Result::kSuccess);
    OnEach([&](Rank rank, RankOfTest& self) -> absl::Status {
      ASSIGN_OR_RETURN(self.communicator,
                       Communicator::Make(self.api, self.patience, id,
                                          {.ranks = ranks, .rank = rank, .stream = &self.stream}));
      return absl::OkStatus();
    });
    ExpectAllOk();
  }

  void ExpectAllOk() {
    for (const auto& rank : ranks_) {
      EXPECT_TRUE(rank->status.ok()) << rank->status;
    }
  }

  std::vector<std::vector<float>> Values() const {
    std::vector<std::vector<float>> all;
    for (const auto& rank : ranks_) {
      all.push_back(rank->values);
    }
    return all;
  }

  // One rank on a clock of its own. Its peers never come; or come, and then do nothing.
  absl::StatusOr<std::unique_ptr<Communicator>> MakeAlone(int ranks, Rank rank,
                                                          bool peers_come = false) {
    UniqueId id;
    EXPECT_EQ(alone_.MakeUniqueId(id), Result::kSuccess);
    for (Rank peer = 0; peers_come && peer < ranks; ++peer) {
      Comm comm = nullptr;
      if (peer != rank) {
        EXPECT_EQ(FakeNccl(world_).Init(comm, ranks, id, peer), Result::kInProgress);
      }
    }
    return Communicator::Make(alone_, counted_, id,
                              {.ranks = ranks, .rank = rank, .stream = &alone_stream_});
  }

  FakeWorld world_;
  StatusLatch aborted_;
  std::vector<std::unique_ptr<RankOfTest>> ranks_;
  FakeNccl alone_{world_};
  FakeStream alone_stream_;
  CountedPatience counted_;
};

TEST_F(NcclCommunicator, AllReduceSumsInPlaceOnEveryRank) {
  Form(3);
  OnEach([&](Rank rank, RankOfTest& self) -> absl::Status {
    self.values = {1.0F + static_cast<float>(rank), 10.0F};
    const TensorView view = HostView(self.values);
    RETURN_IF_ERROR(self.communicator->AllReduce(view, view, ReduceOp::kSum));
    return self.Wait(world_);
  });
  ExpectAllOk();
  EXPECT_THAT(Values(), Each(ElementsAre(6, 30)));
}

// The reduced blocks, gathered, are the all-reduced whole: the counts of the two are of one block.
TEST_F(NcclCommunicator, ReduceScatterAndAllGatherSpeakOfBlocks) {
  Form(3);
  OnEach([&](Rank rank, RankOfTest& self) -> absl::Status {
    self.values.resize(6);
    std::iota(self.values.begin(), self.values.end(), static_cast<float>(rank));
    const TensorView whole = HostView(self.values);
    const TensorView block = Slice(whole, rank * 2, rank * 2 + 2);
    RETURN_IF_ERROR(self.communicator->ReduceScatter(whole, block, ReduceOp::kMax));
    RETURN_IF_ERROR(self.communicator->AllGather(block, whole));
    return self.Wait(world_);
  });
  ExpectAllOk();
  EXPECT_THAT(Values(), Each(ElementsAre(2, 3, 4, 5, 6, 7)));
}

TEST_F(NcclCommunicator, BroadcastAndReduceHaveARoot) {
  Form(3);
  OnEach([&](Rank rank, RankOfTest& self) -> absl::Status {
    self.values = {static_cast<float>(rank + 1), -1.0F};
    const TensorView given = Slice(HostView(self.values), 0, 1);
    const TensorView result = Slice(HostView(self.values), 1, 2);
    RETURN_IF_ERROR(self.communicator->Reduce(given, result, ReduceOp::kSum, 2));
    RETURN_IF_ERROR(self.communicator->Broadcast(given, given, 1));
    return self.Wait(world_);
  });
  ExpectAllOk();
  EXPECT_THAT(Values(), ElementsAre(ElementsAre(2, -1), ElementsAre(2, -1), ElementsAre(2, 6)));
}

// Each sends to the next and receives from the one before: one after the other, all would wait.
TEST_F(NcclCommunicator, AGroupOfSendsAndReceivesIsOneOperation) {
  Form(3);
  OnEach([&](Rank rank, RankOfTest& self) -> absl::Status {
    self.values = {static_cast<float>(rank), -1.0F};
    RETURN_IF_ERROR(self.communicator->Group([&]() -> absl::Status {
      RETURN_IF_ERROR(self.communicator->Send(Slice(HostView(self.values), 0, 1), (rank + 1) % 3));
      return self.communicator->Receive(Slice(HostView(self.values), 1, 2), (rank + 2) % 3);
    }));
    return self.Wait(world_);
  });
  ExpectAllOk();
  EXPECT_THAT(Values(), ElementsAre(ElementsAre(0, 2), ElementsAre(1, 0), ElementsAre(2, 1)));
}

TEST_F(NcclCommunicator, AGroupThatFailsIsEndedAllTheSame) {
  Form(1);
  const absl::Status failed = ranks_[0]->communicator->Group(
      [] { return InvalidArgument("the third bucket has no memory"); });
  EXPECT_EQ(MessageOf(failed), "the third bucket has no memory");
  EXPECT_EQ(world_.open_groups(), 0);
}

TEST_F(NcclCommunicator, AnInitialisationThatStaysInProgressEndsAtTheDeadline) {
  const absl::Status status = MakeAlone(2, 0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("rank 0 of 2 waited 30.0 s"),
                                       HasSubstr("initialisation by all 2 ranks"),
                                       HasSubstr("still calls in progress")));
  EXPECT_EQ(world_.aborted(0), 1);  // the only safe way out of it
}

TEST_F(NcclCommunicator, ACollectiveThatARankDoesNotIssueEndsAtTheDeadline) {
  auto communicator = MakeAlone(2, 1, /*peers_come=*/true);
  ASSERT_TRUE(communicator.ok()) << communicator.status();
  std::vector<float> values = {1};
  const TensorView view = HostView(values);
  EXPECT_TRUE((*communicator)->AllReduce(view, view, ReduceOp::kSum).ok());
  const absl::Status status =
      (*communicator)
          ->Wait([&] { return absl::StatusOr<bool>(world_.IsFinished(alone_stream_)); },
                 "bucket 3 of step 7");
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(MessageOf(status),
              AllOf(HasSubstr("rank 1 of 2 waited 30.0 s for bucket 3 of step 7"),
                    HasSubstr("some rank is missing")));
}

// NCCL does not notice that sizes differ: it hangs, and so does its fake.
TEST_F(NcclCommunicator, CallsThatDifferHangUntilTheCoordinatorEndsThem) {
  Form(2);
  OnEach([&](Rank rank, RankOfTest& self) -> absl::Status {
    self.values.assign(rank == 0 ? 2 : 3, 1.0F);
    const TensorView view = HostView(self.values);
    RETURN_IF_ERROR(self.communicator->AllReduce(view, view, ReduceOp::kSum));
    if (rank == 1) {
      aborted_.Set(Aborted("the generation was aborted"));
    }
    const absl::Status status = self.Wait(world_);
    self.communicator->Abort(status);
    return status;
  });
  for (Rank rank = 0; rank < 2; ++rank) {
    const RankOfTest& self = *ranks_[static_cast<std::size_t>(rank)];
    EXPECT_EQ(self.status.code(), absl::StatusCode::kAborted);
    EXPECT_THAT(MessageOf(self.status), HasSubstr("was told to give up the test"));
    EXPECT_EQ(world_.aborted(rank), 1);
    EXPECT_TRUE(world_.IsFinished(self.stream)) << "an abort ends what is queued";
  }
}

TEST_F(NcclCommunicator, AnAsynchronousErrorIsAVerdictWithRankCallAndNcclsWords) {
  Form(2);
  world_.FailAsync(1, Result::kRemoteError, "socket closed by remote peer 10.0.0.7<4711>");
  RankOfTest& self = *ranks_[1];
  self.values = {1};
  const TensorView view = HostView(self.values);
  const absl::Status status = self.communicator->AllReduce(view, view, ReduceOp::kSum);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(status),
              AllOf(HasSubstr("rank 1 of 2: ncclRemoteError"), HasSubstr("all-reduce (call 1)"),
                    HasSubstr("10.0.0.7<4711>")));
  // What failed stays so, in the first one's words, until the owner aborts or shrinks.
  EXPECT_EQ(self.communicator->Broadcast(view, view, 0), status);
  EXPECT_EQ(world_.aborted(1), 0);
  self.communicator->Abort(status);
  self.communicator->Abort(status);
  EXPECT_EQ(world_.aborted(1), 1);
}

// One rank has an error, one waits for it, one is idle: NCCL tells neither of the two.
TEST_F(NcclCommunicator, OneRanksErrorAbortsEveryRank) {
  Form(3);
  OnEach([&](Rank rank, RankOfTest& self) -> absl::Status {
    self.values = {1};
    const TensorView view = HostView(self.values);
    if (rank == 1) {
      world_.FailAsync(1, Result::kUnhandledCudaError, "an illegal memory access");
    }
    absl::Status status =
        rank == 2 ? absl::OkStatus() : self.communicator->AllReduce(view, view, ReduceOp::kSum);
    if (status.ok() && rank == 0) {
      status = self.Wait(world_);
    }
    if (rank == 1) {
      aborted_.Set(status);  // what the coordinator does with a worker's error
    }
    self.communicator->Abort(Aborted("the generation was aborted"));
    return status;
  });
  EXPECT_EQ(ranks_[0]->status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(ranks_[1]->status.code(), absl::StatusCode::kInternal);
  for (Rank rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(world_.aborted(rank), 1);
  }
}

TEST_F(NcclCommunicator, ARankThatNcclNumbersOtherwiseIsRefused) {
  world_.MistakeShape(1, 0);
  const absl::Status status = MakeAlone(1, 0).status();
  EXPECT_TRUE(status.ok()) << status;
  world_.MistakeShape(4, 3);
  const absl::Status mistaken = MakeAlone(1, 0).status();
  EXPECT_EQ(mistaken.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(MessageOf(mistaken), HasSubstr("rank 0 of 1: NCCL made this rank 3 of 4"));
}

TEST_F(NcclCommunicator, TwoRanksOnOneDeviceAreToldTheRemedy) {
  world_.RefuseInit(Result::kInvalidUsage,
                    "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000");
  const absl::Status status = MakeAlone(2, 1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("rank 1 of 2: ncclInvalidUsage"),
                                       HasSubstr("cluster.shared_gpu: true")));
}

// Rank 1 is lost; NCCL has told rank 2 of it, and rank 0 hangs in a collective with it.
TEST_F(NcclCommunicator, SurvivorsShrinkAndGoOn) {
  Form(3);
  world_.FailAsync(2, Result::kRemoteError, "peer closed");
  OnEach([&](Rank rank, RankOfTest& self) -> absl::Status {
    self.values = {static_cast<float>(rank + 1)};
    if (rank == 1) {
      return absl::OkStatus();
    }
    const TensorView view = HostView(self.values);
    const absl::Status queued = self.communicator->AllReduce(view, view, ReduceOp::kSum);
    EXPECT_EQ(queued.ok(), rank == 0);
    const Rank lost[] = {1};
    ASSIGN_OR_RETURN(auto survivors, self.communicator->Shrink(lost));
    EXPECT_EQ(survivors->ranks(), 2);
    EXPECT_EQ(survivors->rank(), rank == 0 ? 0 : 1);
    EXPECT_EQ(self.communicator->AllReduce(view, view, ReduceOp::kSum).code(),
              rank == 0 ? absl::StatusCode::kAborted : absl::StatusCode::kUnavailable);
    self.communicator = std::move(survivors);
    RETURN_IF_ERROR(self.communicator->AllReduce(view, view, ReduceOp::kSum));
    return self.Wait(world_);
  });
  ExpectAllOk();
  EXPECT_THAT(Values(), ElementsAre(ElementsAre(4), ElementsAre(2), ElementsAre(4)));
  EXPECT_EQ(world_.aborted(0), 1);
  EXPECT_EQ(world_.aborted(2), 1);
}

TEST_F(NcclCommunicator, AShrinkThatASurvivorDoesNotJoinEndsAtTheDeadline) {
  auto communicator = MakeAlone(3, 0, /*peers_come=*/true);
  ASSERT_TRUE(communicator.ok()) << communicator.status();
  const Rank lost[] = {1};
  const absl::Status status = (*communicator)->Shrink(lost).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(MessageOf(status), HasSubstr("the shrink to 2 ranks"));
  EXPECT_EQ((*communicator)->Shrink(lost).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(NcclCommunicator, FinishFreesInPlaceOfAborting) {
  Form(2);
  OnEach([](Rank, RankOfTest& self) { return self.communicator->Finish(); });
  ExpectAllOk();
  EXPECT_EQ(ranks_[0]->communicator->failure().code(), absl::StatusCode::kFailedPrecondition);
  ranks_.clear();
  EXPECT_EQ(world_.destroyed(0), 1);
  EXPECT_EQ(world_.destroyed(1), 1);
  EXPECT_EQ(world_.aborted(0) + world_.aborted(1), 0);
}

TEST_F(NcclCommunicator, ADeviceErrorWhileWaitingNamesTheRank) {
  Form(1);
  const absl::Status status = ranks_[0]->communicator->Wait(
      [] { return absl::StatusOr<bool>(Internal("cudaErrorIllegalAddress")); }, "bucket 2");
  EXPECT_EQ(MessageOf(status), "rank 0 of 1, in bucket 2: cudaErrorIllegalAddress");
}

// In a process of its own (death test): NCCL's settings hold for the life of one.
TEST(NcclSharedGpu, IsDecidedOnceInAProcess) {
  EXPECT_EXIT(
      {
        const bool shared = ShareGpu().ok() && ShareGpu().ok();
        const absl::Status alone = UseGpuAlone();
        const char* host = std::getenv("NCCL_HOSTID");
        const char* interface = std::getenv("NCCL_SOCKET_IFNAME");
        std::fprintf(stderr, "%s|%s|%s", host == nullptr ? "" : host,
                     interface == nullptr ? "" : interface, MessageOf(alone).c_str());
        std::exit(shared && !alone.ok() ? 0 : 1);
      },
      ::testing::ExitedWithCode(0),
      "ranklab-[0-9]+-[0-9]+.lo.NCCL reads its settings once.*with cluster.shared_gpu");
}

// The library of this machine, as far as it goes without a device.
TEST(NcclLibrary, IsLoadedOrMissedByName) {
  const auto api = Load();
  if (!api.ok()) {
    EXPECT_THAT(MessageOf(api.status()), HasSubstr("NCCL")) << api.status();
    GTEST_SKIP() << api.status();
  }
  EXPECT_GE((*api)->version(), 22703);
  UniqueId one;
  UniqueId other;
  EXPECT_EQ((*api)->MakeUniqueId(one), Result::kSuccess);
  EXPECT_EQ((*api)->MakeUniqueId(other), Result::kSuccess);
  EXPECT_NE(one, other);
}

}  // namespace
}  // namespace ranklab::collectives::nccl
