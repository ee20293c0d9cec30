#include "compute/optimizer.h"

#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compute/device.h"
#include "core/random.h"
#include "core/status.h"

namespace ranklab::compute {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kCount = 37;
constexpr double kScale = 1.0 / 64;
constexpr double kRate = 0.25;
constexpr double kMomentum = 0.9;

std::vector<float> Normal(std::int64_t count, Random& random) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    value = static_cast<float>(random.Normal());
  }
  return values;
}

class OptimizerTest : public testing::TestWithParam<const char*> {
 protected:
  CpuDevice device_{{}};
  Random random_{11};
};

TEST_P(OptimizerTest, FollowsItsFormulaForTenSteps) {
  const bool has_momentum = std::string_view(GetParam()) == "momentum";
  auto optimizer = MakeOptimizer(
      {.name = GetParam(), .learning_rate = {.peak = kRate}, .momentum = kMomentum}, device_);
  ASSERT_TRUE(optimizer.ok());
  std::vector<float> parameters = Normal(kCount, random_);
  std::vector<double> expected(parameters.begin(), parameters.end());
  std::vector<double> velocity(kCount, 0.0);
  for (int step = 0; step < 10; ++step) {
    std::vector<float> gradients = Normal(kCount, random_);
    ASSERT_TRUE((*optimizer)
                    ->Apply(HostView(std::span(parameters)), HostView(std::span(gradients)), kScale)
                    .ok());
    for (int i = 0; i < kCount; ++i) {
      const double g = kScale * gradients[i];
      velocity[i] = has_momentum ? kMomentum * velocity[i] + g : g;
      expected[i] -= kRate * velocity[i];
      ASSERT_NEAR(parameters[i], expected[i], 1e-6) << "step " << step << ", element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Names, OptimizerTest, testing::Values("sgd", "momentum"));

class OptimizerRanges : public OptimizerTest {};

// What a server does: the same update on two shards as on the whole.
TEST_P(OptimizerRanges, GiveTheBitsOfTheWhole) {
  const OptimizerSpec spec{
      .name = GetParam(), .learning_rate = {.peak = kRate, .ramp = 2}, .momentum = kMomentum};
  auto whole = MakeOptimizer(spec, device_);
  auto low = MakeOptimizer(spec, device_);
  auto high = MakeOptimizer(spec, device_);
  ASSERT_TRUE(whole.ok() && low.ok() && high.ok());
  std::vector<float> parameters = Normal(kCount, random_);
  std::vector<float> sharded = parameters;
  for (int step = 0; step < 4; ++step) {
    std::vector<float> gradients = Normal(kCount, random_);
    const TensorView g = HostView(std::span(gradients));
    const TensorView p = HostView(std::span(sharded));
    ASSERT_TRUE((*whole)->Apply(HostView(std::span(parameters)), g, kScale).ok());
    ASSERT_TRUE((*low)->Apply(Slice(p, 0, 13), Slice(g, 0, 13), kScale).ok());
    ASSERT_TRUE((*high)->Apply(Slice(p, 13, kCount), Slice(g, 13, kCount), kScale).ok());
    ASSERT_EQ(sharded, parameters);
  }
}

INSTANTIATE_TEST_SUITE_P(Names, OptimizerRanges, testing::Values("sgd", "momentum", "adamw"));

// The formulas of torch.optim.AdamW, in double precision.
TEST(AdamW, FollowsItsFormulaForTenSteps) {
  CpuDevice device({});
  Random random(13);
  const OptimizerSpec spec{.name = "adamw",
                           .learning_rate = {.peak = 0.01},
                           .beta1 = 0.9,
                           .beta2 = 0.99,
                           .epsilon = 1e-6,
                           .weight_decay = 0.1};
  auto optimizer = MakeOptimizer(spec, device);
  ASSERT_TRUE(optimizer.ok());
  std::vector<float> parameters = Normal(kCount, random);
  std::vector<double> expected(parameters.begin(), parameters.end());
  std::vector<double> m(kCount, 0.0);
  std::vector<double> v(kCount, 0.0);
  for (int step = 1; step <= 10; ++step) {
    std::vector<float> gradients = Normal(kCount, random);
    ASSERT_TRUE((*optimizer)
                    ->Apply(HostView(std::span(parameters)), HostView(std::span(gradients)), kScale)
                    .ok());
    for (int i = 0; i < kCount; ++i) {
      const double g = kScale * gradients[i];
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.99 * v[i] + 0.01 * g * g;
      expected[i] -= 0.01 * 0.1 * expected[i];
      expected[i] -= 0.01 * (m[i] / (1 - std::pow(0.9, step))) /
                     (std::sqrt(v[i] / (1 - std::pow(0.99, step))) + 1e-6);
      ASSERT_NEAR(parameters[i], expected[i], 1e-6) << "step " << step << ", element " << i;
    }
  }
  const auto state = (*optimizer)->State();
  ASSERT_EQ(state.size(), 2U);
  EXPECT_EQ(state[0].first, "momentum");
  EXPECT_EQ(state[1].first, "variance");
  EXPECT_NEAR(HostValues<float>(state[1].second)[3], v[3], 1e-6 * v[3] + 1e-12);
}

TEST(LearningRate, IsConstantWithoutASchedule) {
  const LearningRate rate{.peak = 0.3};
  EXPECT_EQ(rate.At(0), 0.3);
  EXPECT_EQ(rate.At(1'000'000), 0.3);
}

TEST(LearningRate, RisesInEqualStepsToItsPeak) {
  const LearningRate rate{.peak = 1.0, .ramp = 4, .ramp_from = 0.2};
  EXPECT_DOUBLE_EQ(rate.At(0), 0.4);
  EXPECT_DOUBLE_EQ(rate.At(1), 0.6);
  EXPECT_DOUBLE_EQ(rate.At(3), 1.0);
  EXPECT_DOUBLE_EQ(rate.At(4), 1.0);
}

TEST(LearningRate, FallsAlongHalfACosineAfterTheRamp) {
  const LearningRate rate{
      .peak = 2.0, .ramp = 10, .cosine = true, .total = 110, .final_share = 0.1};
  EXPECT_DOUBLE_EQ(rate.At(9), 2.0);
  EXPECT_DOUBLE_EQ(rate.At(10), 2.0);
  EXPECT_DOUBLE_EQ(rate.At(60), 2.0 * (0.1 + 0.9 * 0.5));
  EXPECT_DOUBLE_EQ(rate.At(110), 0.2);
  EXPECT_DOUBLE_EQ(rate.At(500), 0.2);
}

TEST(LearningRate, OfManyUpdatesAStepMovesOnceInSoMany) {
  const LearningRate one{.peak = 1.0, .ramp = 5, .cosine = true, .total = 20};
  LearningRate four = one;
  four.updates_per_step = 4;
  for (int update = 0; update < 80; ++update) {
    EXPECT_EQ(four.At(update), one.At(update / 4)) << update;
  }
}

// Goyal et al.: 0.1 for 256 is 3.2 for 8192. Malladi et al.: 3e-4 for 8 times the batch.
TEST(RateScale, HasTheKnownValues) {
  EXPECT_DOUBLE_EQ(0.1 * RateScale("linear", 8192, 256), 3.2);
  EXPECT_NEAR(3e-4 * RateScale("sqrt", 8 * 64, 64), 0.0008485281374, 1e-13);
  EXPECT_EQ(RateScale("none", 8192, 256), 1.0);
}

TEST(ClipFactor, BringsTheNormToTheLimitAndLeavesSmallerOnesAlone) {
  std::vector<float> gradients{30, 40};  // norm 50, scaled 5
  const TensorView view = HostView(std::span(gradients));
  EXPECT_NEAR(*ClipFactor(view, 0.1, 1.0), 0.2, 1e-6);
  EXPECT_EQ(*ClipFactor(view, 0.1, 6.0), 1.0);
  gradients[0] = NAN;
  EXPECT_EQ(*ClipFactor(view, 0.1, 1.0), 1.0) << "divergence shows in the parameters";
}

TEST(Momentum, StateIsNamedAndCountedAsOptimizerMemory) {
  CpuDevice device({});
  auto optimizer = MakeOptimizer(
      {.name = "momentum", .learning_rate = {.peak = kRate}, .momentum = kMomentum}, device);
  ASSERT_TRUE(optimizer.ok());
  EXPECT_TRUE((*optimizer)->State().empty());
  std::vector<float> parameters(kCount);
  std::vector<float> gradients(kCount, 2.0F);
  ASSERT_TRUE((*optimizer)
                  ->Apply(HostView(std::span(parameters)), HostView(std::span(gradients)), 0.5)
                  .ok());
  const auto state = (*optimizer)->State();
  ASSERT_EQ(state.size(), 1U);
  EXPECT_EQ(state[0].first, "momentum");
  EXPECT_THAT(HostValues<float>(state[0].second), testing::Each(1.0F));
  EXPECT_EQ(device.memory().at(static_cast<std::size_t>(MemoryKind::kOptimizer)).now, kCount * 4);
}

TEST(Momentum, WithoutRoomForItsStateSaysSo) {
  CpuDevice device({.cap = 100});
  auto optimizer = MakeOptimizer(
      {.name = "momentum", .learning_rate = {.peak = kRate}, .momentum = kMomentum}, device);
  ASSERT_TRUE(optimizer.ok());
  std::vector<float> values(kCount);
  const absl::Status applied =
      (*optimizer)->Apply(HostView(std::span(values)), HostView(std::span(values)), 1.0);
  EXPECT_EQ(applied.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(applied), HasSubstr("optimizer asked for 148 bytes"));
}

TEST(MakeOptimizer, AnUnknownNameListsThoseThatThereAre) {
  CpuDevice device({});
  const auto unknown = MakeOptimizer({.name = "adam"}, device);
  ASSERT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(unknown.status()), HasSubstr("sgd, momentum"));
}

TEST(CostOfOptimizer, CountsTheStateThatIsReadAndWritten) {
  EXPECT_EQ(CostOfOptimizer("sgd", 10).bytes, 4 * 10 * 3);
  EXPECT_EQ(CostOfOptimizer("momentum", 10).bytes, 4 * 10 * 5);
  EXPECT_EQ(CostOfOptimizer("adamw", 10).bytes, 28 * 10);  // read p g m v, write p m v
  EXPECT_EQ(CostOfClipFactor(10).bytes, 4 * 10);
}

}  // namespace
}  // namespace ranklab::compute
