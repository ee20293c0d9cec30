#include "compute/optimizer.h"

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
  auto optimizer =
      MakeOptimizer({.name = GetParam(), .learning_rate = kRate, .momentum = kMomentum}, device_);
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

// What a server does: the same update on two shards as on the whole.
TEST_P(OptimizerTest, OnTwoRangesGivesTheBitsOfTheWhole) {
  const OptimizerSpec spec{.name = GetParam(), .learning_rate = kRate, .momentum = kMomentum};
  auto whole = MakeOptimizer(spec, device_);
  auto low = MakeOptimizer(spec, device_);
  auto high = MakeOptimizer(spec, device_);
  ASSERT_TRUE(whole.ok() && low.ok() && high.ok());
  std::vector<float> parameters = Normal(kCount, random_);
  std::vector<float> sharded = parameters;
  for (int step = 0; step < 3; ++step) {
    std::vector<float> gradients = Normal(kCount, random_);
    const TensorView g = HostView(std::span(gradients));
    const TensorView p = HostView(std::span(sharded));
    ASSERT_TRUE((*whole)->Apply(HostView(std::span(parameters)), g, kScale).ok());
    ASSERT_TRUE((*low)->Apply(Slice(p, 0, 13), Slice(g, 0, 13), kScale).ok());
    ASSERT_TRUE((*high)->Apply(Slice(p, 13, kCount), Slice(g, 13, kCount), kScale).ok());
    ASSERT_EQ(sharded, parameters);
  }
}

INSTANTIATE_TEST_SUITE_P(Names, OptimizerTest, testing::Values("sgd", "momentum"));

TEST(Momentum, StateIsNamedAndCountedAsOptimizerMemory) {
  CpuDevice device({});
  auto optimizer =
      MakeOptimizer({.name = "momentum", .learning_rate = kRate, .momentum = kMomentum}, device);
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
  auto optimizer =
      MakeOptimizer({.name = "momentum", .learning_rate = kRate, .momentum = kMomentum}, device);
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
}

}  // namespace
}  // namespace ranklab::compute
