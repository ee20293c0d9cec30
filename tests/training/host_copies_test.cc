// Exchanges of a model whose memory is a device's: what the machine sees are copies in host memory,
// which arrive late; what it leaves there comes back to the device.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compute/operations.h"
#include "tests/training/apart_device.h"
#include "transport/tcp/live_loop.h"
#include "worker/blocking_exchange.h"
#include "worker/buckets.h"

namespace ranklab::worker {
namespace {

using compute::DType;
using testing::Each;
using testing::ElementsAre;

std::vector<float> ValuesOf(const compute::TensorView& view) {
  std::vector<float> values(static_cast<std::size_t>(view.element_count()));
  EXPECT_TRUE(Convert({view.data, view.dtype, view.shape, nullptr},
                      Reshape(compute::HostView(std::span(values)), view.shape))
                  .ok());
  return values;
}

// Doubles what is sent, as two equal ranks would; or is a server that writes parameters.
class Doubling final : public ExchangeMachine {
 public:
  Doubling(const HostCopies& copies, Outcome outcome) : copies_(copies), outcome_(outcome) {}

  std::vector<std::string> calls;  // on the loop

  std::string_view name() const override { return "doubling"; }
  Outcome outcome() const override { return outcome_; }
  void BeginStep(double weight) override { copies_.tail()[0] = static_cast<float>(weight); }

  void Begin(Step, const Bucket& bucket, DoneFn done) override {
    calls.push_back(absl::StrFormat("begin %d", bucket.index));
    EXPECT_EQ(bucket.sent.device, nullptr);
    std::vector<float> values = ValuesOf(bucket.sent);
    for (float& value : values) {
      value *= 2;
    }
    EXPECT_TRUE(
        Convert(Reshape(compute::HostView(std::span(values)), bucket.sent.shape), bucket.sent)
            .ok());
    done(absl::OkStatus());
  }

  void EndStep(Step, bool, DoneFn done) override {
    calls.emplace_back("end");
    WriteParameters(7);
    done(absl::OkStatus());
  }
  StepExchange Ended(Step) const override { return {.weight_sum = 2 * copies_.tail()[0]}; }
  bool Finished(Step, Step) const override { return true; }
  void Leave(DoneFn done) override { done(absl::OkStatus()); }
  void FetchFinal(DoneFn done) override {
    WriteParameters(9);
    done(absl::OkStatus());
  }
  void ServerLost(Rank, Rank) override {}
  Nanos PatienceWith(int) const override { return std::chrono::seconds(30); }
  std::string WaitingFor() const override { return "nobody"; }

 private:
  void WriteParameters(float value) {
    if (outcome_ == Outcome::kUpdatedParameters) {
      std::fill_n(copies_.parameters(), kParameters, value);
    }
  }

  static constexpr std::int64_t kParameters = (3 + 1) * 4 + (4 + 1) * 2;
  const HostCopies& copies_;
  const Outcome outcome_;
};

class HostCopiesTest : public testing::TestWithParam<DType> {
 protected:
  void Make(Outcome outcome, bool overlap) {
    experiment::LabSpec spec;
    spec.model = experiment::MlpSpec{{3, 4, 2}};
    auto model = MakeModel(spec, device_, 1, 3, 2);
    ASSERT_TRUE(model.ok());
    model_ = std::move(*model);
    ASSERT_TRUE(model_->Initialize(1).ok());
    buckets_ = CutBuckets(*model_, {.first = 1, .other = 1, .wire = GetParam()});
    auto copies = HostCopies::Make(*model_, GetParam(), outcome == Outcome::kUpdatedParameters);
    auto wire = WireGradients::Make(*model_, GetParam());
    ASSERT_TRUE(copies.ok() && wire.ok());
    ASSERT_TRUE(copies->needed());
    auto kept = std::make_unique<const HostCopies>(std::move(*copies));
    auto machine = std::make_unique<Doubling>(*kept, outcome);
    machine_ = machine.get();
    exchange_ = MakeBlocking(loop_, overlap, std::move(machine),
                             {.wire = std::move(*wire), .copies = std::move(kept)});
  }

  // The gradients of every layer are `value`.
  absl::StatusOr<StepExchange> OneStep(float value) {
    std::vector<float> gradients(static_cast<std::size_t>(model_->parameter_count()), value);
    EXPECT_TRUE(CopyFromHost(compute::HostView(std::span(gradients)), model_->gradients()).ok());
    exchange_->BeginStep(1, 5.0);
    for (Bucket& bucket : buckets_) {
      exchange_->Begin(1, bucket);
    }
    return exchange_->FinishStep(1, false);
  }

  ApartDevice device_;
  transport::LiveLoop loop_;
  std::unique_ptr<Model> model_;
  std::vector<Bucket> buckets_;
  std::unique_ptr<GradientExchange> exchange_;
  Doubling* machine_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Wires, HostCopiesTest, testing::Values(DType::kFloat32, DType::kBFloat16));

TEST_P(HostCopiesTest, SummedGradientsComeBackToTheDeviceInEveryStep) {
  for (const bool overlap : {true, false}) {
    Make(Outcome::kSummedGradients, overlap);
    for (const float value : {1.5F, -3.0F}) {
      const auto exchanged = OneStep(value);
      ASSERT_TRUE(exchanged.ok()) << exchanged.status();
      EXPECT_EQ(exchanged->weight_sum, 10.0);
      EXPECT_THAT(ValuesOf(model_->gradients()), Each(2 * value));
    }
    loop_.RunAndWait([&] {
      EXPECT_THAT(machine_->calls,
                  ElementsAre("begin 0", "begin 1", "end", "begin 0", "begin 1", "end"));
    });
    exchange_.reset();
  }
}

TEST_P(HostCopiesTest, ParametersThatAServerUpdatedComeToTheDevice) {
  Make(Outcome::kUpdatedParameters, /*overlap=*/true);
  ASSERT_TRUE(OneStep(1.0F).ok());
  EXPECT_THAT(ValuesOf(model_->parameters()), Each(7.0F));
  ASSERT_TRUE(exchange_->FetchFinal().ok());
  EXPECT_THAT(ValuesOf(model_->parameters()), Each(9.0F));
}

TEST_P(HostCopiesTest, AFailedCopyEndsTheStepWithItsReason) {
  Make(Outcome::kSummedGradients, /*overlap=*/true);
  device_.FailDownloads(Internal("the device is gone"));
  EXPECT_EQ(OneStep(1.0F).status(), Internal("the device is gone"));
}

}  // namespace
}  // namespace ranklab::worker
