#include "worker/gpt.h"

#include <cmath>
#include <span>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compute/device.h"
#include "core/random.h"
#include "core/status.h"
#include "tests/worker/model_support.h"
#include "tests/worker/reference_gpt.h"
#include "worker/batch.h"

namespace ranklab::worker {
namespace {

using compute::CpuDevice;
using compute::HostValues;
using compute::MemoryKind;

constexpr int kVocabulary = 11;
constexpr experiment::GptSpec kSmall{
    .layers = 2, .hidden = 12, .heads = 3, .context = 7, .tied = true};

// The last sample is shorter: targets are uneven.
Split Draw(std::int64_t samples, const experiment::GptSpec& spec, std::uint64_t seed) {
  Random random(seed);
  Split split;
  split.labels_per_sample = spec.context;
  for (std::int64_t i = 0; i < samples * spec.context; ++i) {
    const bool padding = i / spec.context + 1 == samples && i % spec.context > spec.context / 2;
    split.tokens.push_back(padding ? 0 : static_cast<std::int32_t>(random.Below(kVocabulary)));
    split.labels.push_back(padding ? compute::kNoTarget
                                   : static_cast<std::int32_t>(random.Below(kVocabulary)));
  }
  return split;
}

std::unique_ptr<Gpt> MakeInitialized(const GptOptions& options, CpuDevice& device) {
  auto model = Gpt::Make(options, device);
  EXPECT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE((*model)->Initialize(5).ok());
  // Away from the initial ones, where biases are 0 and everything is small.
  Random random(6);
  for (float& value : HostValues<float>((*model)->parameters())) {
    value += static_cast<float>(random.Normal() * 0.2);
  }
  return *std::move(model);
}

std::vector<float> GradientsOf(Model& model) {
  const std::span<float> gradients = HostValues<float>(model.gradients());
  return {gradients.begin(), gradients.end()};
}

double RelativeDistance(const std::vector<float>& a, const std::vector<float>& b) {
  double square = 0;
  double norm_square = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    square += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    norm_square += static_cast<double>(b[i]) * b[i];
  }
  EXPECT_GT(norm_square, 0);
  return std::sqrt(square / norm_square);
}

class GptTest : public testing::TestWithParam<bool> {
 protected:
  GptTest() { options_.shape.spec.tied = GetParam(); }
  GptOptions options_{.shape = {.spec = kSmall, .vocabulary = kVocabulary}, .max_samples = 3};
  CpuDevice device_{{}};
  Split samples_ = Draw(3, kSmall, 4);
};

TEST_P(GptTest, LossAndGradientsAreTheReferencesCentralDifferences) {
  const std::unique_ptr<Gpt> model = MakeInitialized(options_, device_);
  const compute::LossSum loss = ForwardAndBackward(*model, BatchOf(samples_, 0, 3));
  const std::span<float> start = HostValues<float>(model->parameters());
  const std::vector<double> parameters(start.begin(), start.end());
  const auto objective = [&](const std::vector<double>& at) {
    return ReferenceGptLoss(options_.shape, at, samples_.tokens, samples_.labels);
  };
  const double expected = objective(parameters);
  EXPECT_NEAR(loss.loss, expected, 1e-5 * expected);
  EXPECT_EQ(loss.targets, 2 * 7 + 4);
  const std::vector<float> gradients = GradientsOf(*model);
  // Some elements of every tensor.
  Random random(17);
  const GptLayout layout(options_.shape);
  for (const TensorPlace& place : layout.places()) {
    for (int trial = 0; trial < 6; ++trial) {
      const std::size_t i = place.begin + random.Below(place.size());
      const double derivative = compute::reference::Derivative(objective, parameters, i);
      ASSERT_NEAR(gradients[i], derivative, 2e-5 * std::max(1.0, std::abs(derivative)))
          << place.name << ", element " << i - place.begin;
    }
  }
}

// Within what rounding to 8 or 11 significant bits does to sums of some hundred terms.
TEST_P(GptTest, In16BitsLossAndGradientsAreCloseAndScaledGradientsToo) {
  const std::unique_ptr<Gpt> model = MakeInitialized(options_, device_);
  const compute::LossSum exact = ForwardAndBackward(*model, BatchOf(samples_, 0, 3));
  const std::vector<float> gradients = GradientsOf(*model);
  for (const auto& [storage, tolerance] :
       {std::pair{compute::DType::kBFloat16, 0.05}, {compute::DType::kFloat16, 0.01}}) {
    CpuDevice device({});
    GptOptions options = options_;
    options.storage = storage;
    const std::unique_ptr<Gpt> rounded = MakeInitialized(options, device);
    const compute::LossSum loss = ForwardAndBackward(*rounded, BatchOf(samples_, 0, 3), 256.0F);
    EXPECT_NEAR(loss.loss, exact.loss, tolerance * exact.loss);
    EXPECT_NE(loss.loss, exact.loss) << "nothing was rounded";
    std::vector<float> unscaled = GradientsOf(*rounded);
    for (float& gradient : unscaled) {
      gradient /= 256.0F;
    }
    EXPECT_LE(RelativeDistance(unscaled, gradients), tolerance);
  }
}

TEST_P(GptTest, MicroBatchesOfUnevenTargetsAddUpToTheBatch) {
  const std::unique_ptr<Gpt> model = MakeInitialized(options_, device_);
  const compute::LossSum whole = ForwardAndBackward(*model, BatchOf(samples_, 0, 3));
  const std::vector<float> at_once = GradientsOf(*model);
  ASSERT_TRUE(model->ZeroGradients().ok());
  compute::LossSum sum;
  for (const auto& [first, last] : {std::pair{0, 2}, {2, 3}}) {
    const compute::LossSum part = ForwardAndBackward(*model, BatchOf(samples_, first, last));
    sum.loss += part.loss;
    sum.targets += part.targets;
  }
  EXPECT_EQ(sum.targets, whole.targets);
  EXPECT_NEAR(sum.loss / sum.targets, whole.loss / whole.targets,
              1e-6 * whole.loss / whole.targets);
  EXPECT_LE(RelativeDistance(GradientsOf(*model), at_once), 1e-6);
}

TEST_P(GptTest, RecomputationGivesTheSameBitsInLessMemory) {
  const std::unique_ptr<Gpt> model = MakeInitialized(options_, device_);
  const auto activations = [](const CpuDevice& device) {
    return device.memory().at(static_cast<std::size_t>(MemoryKind::kActivations)).now;
  };
  CpuDevice other({});
  GptOptions recompute = options_;
  recompute.recompute = true;
  const std::unique_ptr<Gpt> again = MakeInitialized(recompute, other);
  ForwardAndBackward(*model, BatchOf(samples_, 0, 3));
  ForwardAndBackward(*again, BatchOf(samples_, 0, 3));
  EXPECT_EQ(GradientsOf(*again), GradientsOf(*model));
  // One block's activations less: of a row 15 C for the values, 4 statistics, H log sums.
  EXPECT_EQ(activations(device_) - activations(other), 3 * 7 * (15 * 12 + 4 + 3) * 4);
}

TEST_P(GptTest, ABackwardLayerCompletesItsOwnGradients) {
  const std::unique_ptr<Gpt> model = MakeInitialized(options_, device_);
  const Batch batch = BatchOf(samples_, 0, 3);
  ForwardAndBackward(*model, batch);
  const std::vector<float> complete = GradientsOf(*model);
  ASSERT_TRUE(model->ZeroGradients().ok());
  for (int layer = 0; layer < model->layer_count(); ++layer) {
    ASSERT_TRUE(model->ForwardLayer(layer, batch).ok());
  }
  ASSERT_TRUE(model->Loss(batch, /*scale=*/1.0F).ok());
  for (int layer = model->layer_count() - 1; layer >= 0; --layer) {
    ASSERT_TRUE(model->BackwardLayer(layer, batch).ok());
    const std::vector<float> now = GradientsOf(*model);
    for (std::int64_t i = model->ParameterBegin(layer); i < model->parameter_count(); ++i) {
      ASSERT_EQ(now[i], complete[i]) << "element " << i << " after layer " << layer;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tied, GptTest, testing::Bool());

// Check values of a tiny GPT and of GPT-2 small: 124,439,808 parameters.
TEST(GptLayout, HasTheKnownNumberOfParameters) {
  const GptLayout tiny(
      {.spec = {.layers = 4, .hidden = 128, .heads = 4, .context = 64}, .vocabulary = 256});
  EXPECT_EQ(tiny.parameter_count(), 834'304);
  const GptLayout small(
      {.spec = {.layers = 12, .hidden = 768, .heads = 12, .context = 1024}, .vocabulary = 50257});
  EXPECT_EQ(small.parameter_count(), 124'439'808);
  EXPECT_EQ(small.layer_count(), 14);
  EXPECT_EQ(small.Block(3, GptBlockTensor::kQkvWeight).name, "h.3.attn.c_attn.weight");
  EXPECT_EQ(small.Block(3, GptBlockTensor::kContractBias).name, "h.3.mlp.c_proj.bias");
  EXPECT_EQ(small.head().name, "wte.weight");
}

TEST(GptLayout, AnUntiedHeadIsTheLastTensor) {
  const GptLayout layout(
      {.spec = {.layers = 1, .hidden = 8, .heads = 2, .context = 4, .tied = false},
       .vocabulary = 16});
  EXPECT_EQ(layout.head().name, "lm_head.weight");
  EXPECT_EQ(layout.head().begin + layout.head().size(), layout.parameter_count());
}

TEST(Gpt, InitializesBySeedAsGpt2Does) {
  CpuDevice device({});
  const auto values = [&](std::uint64_t seed) {
    auto model =
        Gpt::Make({.shape = {.spec = {.layers = 2, .hidden = 64, .heads = 2, .context = 16},
                             .vocabulary = 256},
                   .max_samples = 1},
                  device);
    EXPECT_TRUE((*model)->Initialize(seed).ok());
    const std::span<float> all = HostValues<float>((*model)->parameters());
    return std::vector<float>(all.begin(), all.end());
  };
  const std::vector<float> first = values(1);
  EXPECT_EQ(values(1), first);
  EXPECT_NE(values(2), first);
  const GptLayout layout(
      {.spec = {.layers = 2, .hidden = 64, .heads = 2, .context = 16}, .vocabulary = 256});
  const auto deviation = [&](const TensorPlace& place) {
    double square = 0;
    for (std::int64_t i = 0; i < place.size(); ++i) {
      square += static_cast<double>(first[place.begin + i]) * first[place.begin + i];
    }
    return std::sqrt(square / static_cast<double>(place.size()));
  };
  EXPECT_NEAR(deviation(layout.token_table()), 0.02, 0.001);
  EXPECT_NEAR(deviation(layout.Block(1, GptBlockTensor::kContractWeight)), 0.01, 0.0005);
  EXPECT_EQ(deviation(layout.Block(1, GptBlockTensor::kNorm2Gain)), 1);
  EXPECT_EQ(deviation(layout.Block(1, GptBlockTensor::kQkvBias)), 0);
}

TEST(Gpt, CostsTheFlopsOfItsProducts) {
  CpuDevice device({});
  const GptOptions options{
      .shape = {.spec = {.layers = 4, .hidden = 128, .heads = 4, .context = 64}, .vocabulary = 256},
      .max_samples = 1};
  auto model = Gpt::Make(options, device);
  ASSERT_TRUE(model.ok());
  const auto flops = [](const std::vector<fabric::Operation>& operations) {
    double sum = 0;
    for (const fabric::Operation& operation : operations) {
      sum += operation.flops;
    }
    return sum;
  };
  double forward = 0;
  double backward = 0;
  for (int layer = 0; layer < (*model)->layer_count(); ++layer) {
    const LayerCost cost = (*model)->CostOf(layer, 2);
    forward += flops(cost.forward);
    backward += flops(cost.backward);
  }
  constexpr double kTokens = 2 * 64;
  constexpr double kMatrices = 4 * 12 * 128 * 128 + 256 * 128;  // elements of weights
  constexpr double kScores = 4 * 128 * 64;                      // half of the products with scores
  constexpr double kSmall = 0.02;                               // norms, loss, embedding
  EXPECT_NEAR(forward, kTokens * (2 * kMatrices + 2 * kScores), kSmall * forward);
  EXPECT_NEAR(backward, kTokens * (4 * kMatrices + 5 * kScores), kSmall * backward);
}

TEST(Gpt, RefusesMoreSamplesThanItWasMadeFor) {
  CpuDevice device({});
  const std::unique_ptr<Gpt> model = MakeInitialized(
      {.shape = {.spec = kSmall, .vocabulary = kVocabulary}, .max_samples = 2}, device);
  Split samples = Draw(3, kSmall, 1);
  EXPECT_DEATH(model->ForwardLayer(0, BatchOf(samples, 0, 3)).IgnoreError(),
               "3 samples, made for 2");
}

}  // namespace
}  // namespace ranklab::worker
