#include "worker/model.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compute/device.h"
#include "compute/optimizer.h"
#include "core/status.h"

namespace ranklab::worker {
namespace {

using testing::HasSubstr;

experiment::LabSpec SpecOf(const std::vector<int>& widths) {
  experiment::LabSpec spec;
  spec.model = experiment::MlpSpec{.layers = widths};
  return spec;
}

TEST(MakeModel, RefusesWidthsThatDoNotFitTheData) {
  compute::CpuDevice device({});
  const std::vector<std::pair<std::vector<int>, std::string>> cases{
      {{}, "0 widths"},
      {{64}, "1 widths"},
      {{64, 0, 10}, "a width of 0"},
      {{32, 10}, "from 32 to 10; the data has 64 inputs and 10 classes"},
      {{64, 32, 9}, "from 64 to 9"}};
  for (const auto& [widths, message] : cases) {
    const auto model = MakeModel(SpecOf(widths), device, 8, 64, 10);
    ASSERT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(MessageOf(model.status()), HasSubstr(message));
  }
  EXPECT_TRUE(MakeModel(SpecOf({64, 32, 10}), device, 8, 64, 10).ok());
}

// Mixed precision: weights of 4 bytes and a copy of 2, gradients of 4, activations of 2.
TEST(MakeModel, StoresActivationsAndACopyOfTheWeightsIn16Bits) {
  const auto memory = [](const char* precision) {
    compute::CpuDevice device({});
    experiment::LabSpec spec = SpecOf({64, 32, 10});
    spec.train.precision = precision;
    const auto model = MakeModel(spec, device, 8, 64, 10);
    EXPECT_TRUE(model.ok());
    std::vector<float> inputs(8 * 64);
    const Batch batch{.inputs = Reshape(compute::HostView(std::span(inputs)), {8, 64, 1, 1}),
                      .labels = {}};
    EXPECT_TRUE((*model)->ForwardLayer(0, batch).ok());
    return device.memory();
  };
  const auto full = memory("fp32");
  const auto half = memory("fp16");
  const auto of = [](const auto& counts, compute::MemoryKind kind) {
    return counts.at(static_cast<std::size_t>(kind)).now;
  };
  using enum compute::MemoryKind;
  EXPECT_EQ(2 * of(half, kWeights), 3 * of(full, kWeights));
  EXPECT_EQ(of(half, kGradients), of(full, kGradients));
  EXPECT_GT(of(half, kActivations), 0);
  EXPECT_EQ(2 * of(half, kActivations), of(full, kActivations));
}

TEST(MakeModel, AGptTakesSequencesOfItsContext) {
  compute::CpuDevice device({});
  experiment::LabSpec spec;
  spec.model = experiment::GptSpec{.layers = 1, .hidden = 8, .heads = 2, .context = 16};
  const auto wrong = MakeModel(spec, device, 8, 12, 32);
  ASSERT_EQ(wrong.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(wrong.status()), HasSubstr("context is 16; the data has sequences of 12"));
  EXPECT_TRUE(MakeModel(spec, device, 8, 16, 32).ok());
}

// From the lab alone: as many parameters as with its data.
TEST(MakeModel, KnowsTheVocabularyOfALab) {
  compute::CpuDevice device({});
  experiment::LabSpec spec;
  spec.model = experiment::GptSpec{.layers = 1, .hidden = 8, .heads = 2, .context = 16};
  spec.data.kind = "text";
  const auto text = MakeModel(spec, device, 1);
  spec.data.kind = "grammar";
  spec.data.vocabulary = 10;
  const auto grammar = MakeModel(spec, device, 1);
  ASSERT_TRUE(text.ok() && grammar.ok());
  EXPECT_EQ((*text)->parameter_count() - (*grammar)->parameter_count(), (256 - 10) * 8);
}

class MlpCosts : public testing::Test {
 protected:
  static constexpr std::int64_t kSamples = 256;
  void SetUp() override {
    auto model = MakeModel(SpecOf({64, 512, 10}), device_, 1, 64, 10);
    ASSERT_TRUE(model.ok());
    model_ = *std::move(model);
  }
  compute::CpuDevice device_{{}};
  std::unique_ptr<Model> model_;
};

TEST_F(MlpCosts, AreSixFlopsAParameterAndSampleButForTheFirstInputs) {
  double flops = 0;
  for (int layer = 0; layer < 2; ++layer) {
    const LayerCost cost = model_->CostOf(layer, kSamples);
    for (const auto& pass : {cost.forward, cost.backward}) {
      for (const fabric::Operation& operation : pass) {
        flops += operation.flops;
      }
    }
  }
  const double weights = 64 * 512 + 512 * 10;
  const double first_inputs = 2.0 * 64 * 512 * kSamples;
  const double loss = 10 * kSamples;
  EXPECT_DOUBLE_EQ(flops, 6.0 * weights * kSamples - first_inputs + loss);
}

TEST_F(MlpCosts, CountOneOperationAProductAndOneForTheLoss) {
  EXPECT_EQ(model_->CostOf(0, kSamples).forward.size(), 1U);
  EXPECT_EQ(model_->CostOf(0, kSamples).backward.size(), 1U);
  EXPECT_EQ(model_->CostOf(1, kSamples).forward.size(), 2U);
  EXPECT_EQ(model_->CostOf(1, kSamples).backward.size(), 2U);
  // x, W, b and y once each.
  EXPECT_DOUBLE_EQ(model_->CostOf(0, kSamples).forward[0].bytes,
                   4.0 * (256 * 64 + 64 * 512 + 512 + 256 * 512));
}

TEST_F(MlpCosts, BecomeTheSumOfTheirOperationsTimes) {
  const fabric::DeviceModel device{.name = "test",
                                   .words = "",
                                   .fp32_flops = 1e12,
                                   .bf16_flops = 1e12,
                                   .memory_bandwidth = 1e11,
                                   .source = ""};
  constexpr Nanos kOverhead = std::chrono::microseconds(5);
  const LayerTimes times = ModelledTimes(
      *model_, device, kOverhead, {.samples = kSamples, .update = {.optimizer = "momentum"}});
  ASSERT_EQ(times.forward.size(), 2U);
  ASSERT_EQ(times.backward.size(), 2U);
  for (int layer = 0; layer < 2; ++layer) {
    Nanos sum{};
    for (const fabric::Operation& operation : model_->CostOf(layer, kSamples).forward) {
      sum += fabric::TimeOf(device, operation, kOverhead);
    }
    EXPECT_EQ(times.forward[layer], sum);
    EXPECT_GT(times.backward[layer], kOverhead);
  }
  // 5 floats of 4 bytes a parameter at 100 GB/s, and the overhead.
  const double optimizer = 5e-6 + 20.0 * static_cast<double>(model_->parameter_count()) / 1e11;
  EXPECT_NEAR(static_cast<double>(times.optimizer.count()) * 1e-9, optimizer, 2e-9);
  EXPECT_EQ(ModelledTimes(*model_, device, kOverhead, {.samples = kSamples}).optimizer,
            Nanos::zero());
  // Clipping reads every gradient once more.
  const LayerTimes clipped =
      ModelledTimes(*model_, device, kOverhead,
                    {.samples = kSamples, .update = {.optimizer = "momentum", .clips = true}});
  const double clipping = 5e-6 + 4.0 * static_cast<double>(model_->parameter_count()) / 1e11;
  EXPECT_NEAR(static_cast<double>((clipped.optimizer - times.optimizer).count()) * 1e-9, clipping,
              2e-9);
}

// Half the bytes at the bf16 rate, and the parameters once in 4 bytes and once in 2.
TEST_F(MlpCosts, In16BitsAreHalfTheBytesAndTheRounding) {
  const fabric::DeviceModel device{.name = "test",
                                   .words = "",
                                   .fp32_flops = 1e12,
                                   .bf16_flops = 4e12,
                                   .memory_bandwidth = 1e11,
                                   .source = ""};
  const LayerTimes times = ModelledTimes(
      *model_, device, Nanos::zero(), {.samples = kSamples, .storage = compute::DType::kFloat16});
  double expected = 6.0 * (65 * 512) / 1e11;
  for (const fabric::Operation& operation : model_->CostOf(0, kSamples).forward) {
    expected += std::max(operation.flops / 4e12, operation.bytes / 2 / 1e11);
  }
  EXPECT_NEAR(static_cast<double>(times.forward[0].count()) * 1e-9, expected, 3e-9);
}

}  // namespace
}  // namespace ranklab::worker
