// The exchange over NCCL on a fake of it, with a CPU's memory in the place of a GPU's: what is
// queued in which order, what comes out, and what is refused. Not what a GPU makes of it.
#include "worker/exchange_nccl.h"

#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <absl/synchronization/mutex.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/cpu_reducer.h"
#include "compute/device.h"
#include "core/status_latch.h"
#include "sim/virtual_loop.h"
#include "tests/collectives/nccl/fake_nccl.h"
#include "transport/local_wire.h"
#include "worker/buckets.h"
#include "worker/trace_buffer.h"

namespace ranklab::worker {
namespace {

namespace nccl = collectives::nccl;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Waits for the other ranks as long as it takes, or until the generation is aborted.
class TestPatience final : public nccl::Patience {
 public:
  explicit TestPatience(const StatusLatch& aborted) : aborted_(aborted) {}
  Nanos Now() override { return ++now_; }
  bool Pause(Nanos) override { return aborted_.SleepUnlessSet(std::chrono::microseconds(50)); }

 private:
  const StatusLatch& aborted_;
  Nanos now_{};
};

class TestQueues final : public nccl::Queues {
 public:
  TestQueues(nccl::FakeWorld& world, std::string device)
      : world_(world), device_(std::move(device)) {}

  nccl::Stream communication() override { return &stream_; }
  absl::Status CommunicationWaitsForCompute() override {
    log += world_.IsFinished(stream_) ? "gradients(idle) " : "gradients(busy) ";
    return absl::OkStatus();
  }
  absl::Status ComputeWaitsForCommunication() override {
    log += "sums ";
    return absl::OkStatus();
  }
  absl::StatusOr<bool> ComputeIsDone() override { return true; }
  absl::StatusOr<bool> CommunicationIsDone() override { return world_.IsFinished(stream_); }
  std::string device_id() override { return device_; }

  std::string log;

 private:
  nccl::FakeWorld& world_;
  const std::string device_;
  nccl::FakeStream stream_;
};

// The coordinator's barrier with tokens.
class Meeting {
 public:
  explicit Meeting(std::size_t ranks) : tokens_(ranks) {}

  std::vector<std::string> Share(Rank rank, const std::string& mine) {
    absl::MutexLock lock(&mutex_);
    tokens_[static_cast<std::size_t>(rank)] = mine;
    ++here_;
    const auto all = [this] { return here_ == tokens_.size(); };
    mutex_.Await(absl::Condition(&all));
    return tokens_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::string> tokens_;
  std::size_t here_ = 0;
};

experiment::LabSpec Lab() {
  experiment::LabSpec spec;
  spec.model = experiment::MlpSpec{.layers = {4, 3, 2}};
  spec.exchange.kind = experiment::NcclSpec{};
  return spec;
}

class RankOfTest {
 public:
  RankOfTest(nccl::FakeWorld& world, const StatusLatch& aborted, std::string device)
      : queues(world, std::move(device)),
        world_(world),
        patience_(aborted),
        network_(loop_),
        wire_(network_.Connect({Role::kWorker, 0})),
        messenger_(loop_, *wire_, {.generation = 1}) {}

  ~RankOfTest() { exchange.reset(); }  // before the memory that it sums

  absl::Status Make(const ExchangeOptions& options, ShareFn share, bool on_gpu = true) {
    ASSIGN_OR_RETURN(model_, MakeModel(Lab(), device_, 1, 4, 2));
    ASSIGN_OR_RETURN(exchange, MakeNcclExchange({loop_, messenger_, trace_, reducer_, *model_},
                                                {.queues = on_gpu ? &queues : nullptr,
                                                 .patience = patience_,
                                                 .share = std::move(share)},
                                                options, std::make_unique<nccl::FakeNccl>(world_)));
    // Each layer is a bucket.
    buckets_ = CutBuckets(*model_, {.first = 4, .other = 4, .wire = options.wire});
    return absl::OkStatus();
  }

  // A step as the training step does it; gradient i becomes `first` + i.
  absl::Status Begin(float first, double weight) {
    RETURN_IF_ERROR(model_->ZeroGradients());
    exchange->BeginStep(1, weight);
    std::iota(Gradients().begin(), Gradients().end(), first);
    for (Bucket& bucket : buckets_) {
      exchange->Begin(1, bucket);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<StepExchange> Step(float first, double weight) {
    RETURN_IF_ERROR(Begin(first, weight));
    return exchange->FinishStep(1, false);
  }

  std::span<float> Gradients() { return compute::HostValues<float>(model_->gradients()); }

  TestQueues queues;
  std::unique_ptr<GradientExchange> exchange;
  absl::Status status;

 private:
  nccl::FakeWorld& world_;
  TestPatience patience_;
  sim::VirtualLoop loop_;
  transport::LocalNetwork network_;
  std::unique_ptr<transport::Wire> wire_;
  transport::Messenger messenger_;
  TraceBuffer trace_;
  collectives::CpuReducer reducer_;
  compute::CpuDevice device_{compute::CpuOptions{}};
  std::unique_ptr<Model> model_;
  std::vector<Bucket> buckets_;
};

class NcclExchange : public ::testing::Test {
 protected:
  void OnEach(const std::function<absl::Status(Rank, RankOfTest&)>& run) {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      threads.emplace_back([&, i] { ranks_[i]->status = run(static_cast<Rank>(i), *ranks_[i]); });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }

  // Ranks with these GPUs, each made by `options`; their statuses say how it went.
  void Make(const std::vector<std::string>& devices, ExchangeOptions options = {}) {
    options.spec.kind = experiment::NcclSpec{};
    options.workers = static_cast<int>(devices.size());
    options.timeout = std::chrono::seconds(30);
    for (const std::string& device : devices) {
      ranks_.push_back(std::make_unique<RankOfTest>(world_, aborted_, device));
    }
    Meeting meeting(devices.size());
    OnEach([&](Rank rank, RankOfTest& self) {
      ExchangeOptions mine = options;
      mine.rank = rank;
      return self.Make(mine, [&](const std::string& token) { return meeting.Share(rank, token); });
    });
  }

  // Three ranks of weights 1, 2, 3 whose gradients begin at 0, 10, 20: all end with the sums.
  void ExpectSums() {
    for (const auto& rank : ranks_) {
      ASSERT_TRUE(rank->status.ok()) << rank->status;
    }
    OnEach([&](Rank rank, RankOfTest& self) -> absl::Status {
      ASSIGN_OR_RETURN(const StepExchange exchanged,
                       self.Step(10.0F * static_cast<float>(rank), rank + 1.0));
      EXPECT_EQ(exchanged.weight_sum, 6.0);
      EXPECT_FALSE(exchanged.overflow);
      return absl::OkStatus();
    });
    for (const auto& rank : ranks_) {
      EXPECT_TRUE(rank->status.ok()) << rank->status;
      for (std::size_t i = 0; i < rank->Gradients().size(); ++i) {
        EXPECT_EQ(rank->Gradients()[i], 30.0F + 3.0F * static_cast<float>(i));
      }
    }
  }

  nccl::FakeWorld world_;
  StatusLatch aborted_;
  std::vector<std::unique_ptr<RankOfTest>> ranks_;
};

TEST_F(NcclExchange, SumsGradientsAndWeightsOverTheRanks) {
  Make({"GPU-a", "GPU-b", "GPU-c"});
  ExpectSums();
}

TEST_F(NcclExchange, SumsInTheWiresDTypeAndTheWeightInFloat32) {
  Make({"GPU-a", "GPU-b", "GPU-c"}, {.wire = compute::DType::kBFloat16});
  ExpectSums();
}

TEST_F(NcclExchange, WithoutOverlapSumsTheSame) {
  ExchangeOptions options;
  options.spec.overlap = false;
  Make({"GPU-a", "GPU-b", "GPU-c"}, options);
  ExpectSums();
}

// NCCL's queue waits for the gradients of each bucket, of which there are two, and the optimizer's
// for the sums. One rank alone: nothing is pending when the next bucket comes.
TEST_F(NcclExchange, TheQueuesWaitForEachOther) {
  Make({"GPU-a"});
  ASSERT_TRUE(ranks_[0]->Step(0, 1).ok());
  EXPECT_EQ(ranks_[0]->queues.log, "gradients(idle) gradients(idle) sums ");
}

// The training thread queues, and does not wait before the end of the step.
TEST_F(NcclExchange, ABucketIsQueuedWhileAnotherIsUnderWay) {
  Make({"GPU-a", "GPU-b"});
  ASSERT_TRUE(ranks_[0]->Begin(0, 1).ok());  // rank 1 does not begin
  EXPECT_EQ(ranks_[0]->queues.log, "gradients(idle) gradients(busy) ");
}

TEST_F(NcclExchange, EndsWithoutAnAbort) {
  Make({"GPU-a", "GPU-b"});
  OnEach([](Rank, RankOfTest& self) -> absl::Status {
    RETURN_IF_ERROR(self.Step(0, 1).status());
    RETURN_IF_ERROR(self.exchange->Leave());
    return self.exchange->FetchFinal();
  });
  ranks_.clear();
  EXPECT_EQ(world_.destroyed(0) + world_.destroyed(1), 2);
  EXPECT_EQ(world_.aborted(0) + world_.aborted(1), 0);
}

// Rank 1 is stuck somewhere else; the coordinator ends the generation.
TEST_F(NcclExchange, AnAbortedGenerationEndsTheWaitAndTheCommunicator) {
  Make({"GPU-a", "GPU-b"});
  OnEach([&](Rank rank, RankOfTest& self) -> absl::Status {
    if (rank == 1) {
      aborted_.Set(Aborted("worker 1 was lost"));
      return absl::OkStatus();
    }
    return self.Step(0, 1).status();
  });
  EXPECT_EQ(ranks_[0]->status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(MessageOf(ranks_[0]->status),
              AllOf(StartsWith("step 1: rank 0 of 2"), HasSubstr("the all-reduce of 2 buckets")));
  EXPECT_EQ(world_.aborted(0), 1);
  ranks_.clear();
  EXPECT_EQ(world_.aborted(1), 1) << "the other one's, when its run ends";
}

TEST_F(NcclExchange, AnAsynchronousErrorEndsTheStepByName) {
  Make({"GPU-a", "GPU-b"});
  world_.FailAsync(0, nccl::Result::kRemoteError, "connection closed by 10.0.0.2");
  const absl::Status status = ranks_[0]->Step(0, 1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(status), AllOf(StartsWith("step 1: rank 0 of 2: ncclRemoteError in"),
                                       HasSubstr("connection closed by 10.0.0.2")));
  EXPECT_EQ(world_.aborted(0), 1);
}

TEST_F(NcclExchange, AWorkerWithoutAGpuIsRefused) {
  RankOfTest alone(world_, aborted_, "");
  const absl::Status status = alone.Make(
      {}, [](const std::string&) { return std::vector<std::string>{}; }, /*on_gpu=*/false);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("exchange.kind nccl needs a GPU"),
                                       HasSubstr("cluster.device: cuda")));
}

TEST_F(NcclExchange, TwoRanksOnOneGpuAreRefusedByName) {
  Make({"GPU-a", "GPU-b", "GPU-a"});
  for (const auto& rank : ranks_) {
    EXPECT_EQ(rank->status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(MessageOf(rank->status), AllOf(StartsWith("ranks 0 and 2 are both on GPU-a"),
                                               HasSubstr("cluster.shared_gpu: true")));
  }
}

TEST_F(NcclExchange, ASharedGpuIsForAtMostFour) {
  Make({"GPU-a", "GPU-a", "GPU-a"}, {.shared_gpu = true});
  ExpectSums();
  ranks_.clear();
  Make({"GPU-a", "GPU-a", "GPU-a", "GPU-a", "GPU-a"}, {.shared_gpu = true});
  for (const auto& rank : ranks_) {
    EXPECT_EQ(MessageOf(rank->status), "5 workers with cluster.shared_gpu; at most 4");
  }
}

TEST_F(NcclExchange, TokensThatAreNoneAreRefused) {
  RankOfTest alone(world_, aborted_, "GPU-a");
  ExchangeOptions options;
  options.workers = 2;
  const auto refusal = [&](const std::vector<std::string>& others) {
    return MessageOf(alone.Make(options, [&](const std::string& mine) {
      std::vector<std::string> all = {mine};
      all.insert(all.end(), others.begin(), others.end());
      return all;
    }));
  };
  EXPECT_EQ(refusal({"short"}), "rank 1 brought \"short\", which is no id and GPU");
  EXPECT_EQ(refusal({std::string(256, 'a')}),
            "rank 1 brought \"" + std::string(40, 'a') + "\", which is no id and GPU");
  EXPECT_THAT(refusal({std::string(255, 'a') + "xGPU-b"}), StartsWith("rank 1 brought"));
  EXPECT_EQ(refusal({}), "1 ranks brought what NCCL needs, not 2");
}

}  // namespace
}  // namespace ranklab::worker
