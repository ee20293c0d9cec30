#include "worker/mlp.h"

#include <cmath>
#include <span>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compute/device.h"
#include "core/random.h"
#include "core/status.h"
#include "tests/worker/model_support.h"
#include "tests/worker/reference_mlp.h"

namespace ranklab::worker {
namespace {

using compute::CpuDevice;
using compute::HostValues;
using compute::MemoryKind;

struct Samples {
  std::vector<float> inputs;
  std::vector<std::int32_t> labels;

  Batch Part(std::int64_t first, std::int64_t last) {
    const std::int64_t width = std::ssize(inputs) / std::ssize(labels);
    const auto count = static_cast<std::size_t>(last - first);
    return {.inputs =
                Reshape(compute::HostView(std::span(inputs).subspan(first * width, count * width)),
                        {last - first, width, 1, 1}),
            .labels = compute::HostView(std::span(labels).subspan(first, count))};
  }
  Batch All() { return Part(0, std::ssize(labels)); }
};

Samples Draw(std::int64_t count, int inputs, int classes, std::uint64_t seed) {
  Random random(seed);
  Samples samples;
  for (std::int64_t i = 0; i < count * inputs; ++i) {
    samples.inputs.push_back(static_cast<float>(random.Normal()));
  }
  for (std::int64_t i = 0; i < count; ++i) {
    samples.labels.push_back(static_cast<std::int32_t>(random.Below(classes)));
  }
  return samples;
}

std::unique_ptr<Mlp> MakeInitialized(const std::vector<int>& widths, CpuDevice& device,
                                     std::int64_t max_samples, std::uint64_t seed) {
  auto model = Mlp::Make(widths, device, max_samples);
  EXPECT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE((*model)->Initialize(seed).ok());
  return *std::move(model);
}

ReferenceResult ReferenceOf(const std::vector<int>& widths, Mlp& model, const Samples& samples) {
  const std::span<float> parameters = HostValues<float>(model.parameters());
  return ReferenceLoss(widths, {parameters.begin(), parameters.end()},
                       {samples.inputs.begin(), samples.inputs.end()},
                       {samples.labels.begin(), samples.labels.end()});
}

// |a - b| / |b| of elements [begin, end), Euclidean. Fails where b is zero.
double RelativeDistance(std::span<const float> a, const std::vector<double>& b, std::int64_t begin,
                        std::int64_t end) {
  double square = 0;
  double norm_square = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    square += (a[i] - b[i]) * (a[i] - b[i]);
    norm_square += b[i] * b[i];
  }
  EXPECT_GT(norm_square, 0);
  return std::sqrt(square / norm_square);
}

class MlpTest : public testing::TestWithParam<std::vector<int>> {
 protected:
  static constexpr std::int64_t kSamples = 13;
  const std::vector<int> widths_ = GetParam();
  CpuDevice device_{{}};
  Samples samples_ = Draw(kSamples, widths_.front(), widths_.back(), 3);
};

// The first half of the proof: the reference's gradient is the derivative of its loss.
TEST_P(MlpTest, ReferenceGradientIsTheCentralDifference) {
  const std::unique_ptr<Mlp> model = MakeInitialized(widths_, device_, kSamples, 5);
  const std::span<float> start = HostValues<float>(model->parameters());
  std::vector<double> parameters(start.begin(), start.end());
  const std::vector<double> inputs(samples_.inputs.begin(), samples_.inputs.end());
  const std::vector<int> labels(samples_.labels.begin(), samples_.labels.end());
  const ReferenceResult result = ReferenceLoss(widths_, parameters, inputs, labels);
  Random random(17);
  for (int trial = 0; trial < 40; ++trial) {
    const std::size_t i = random.Below(parameters.size());
    constexpr double kStep = 1e-6;
    const double before = parameters[i];
    parameters[i] = before + kStep;
    const double above = ReferenceLoss(widths_, parameters, inputs, labels).loss;
    parameters[i] = before - kStep;
    const double below = ReferenceLoss(widths_, parameters, inputs, labels).loss;
    parameters[i] = before;
    // Rounding of the two losses over 2 kStep, and the third derivative times kStep squared.
    ASSERT_NEAR(result.gradient[i], (above - below) / (2 * kStep),
                1e-6 * std::max(1.0, std::abs(result.gradient[i])))
        << "parameter " << i;
  }
}

// The second half: the model's passes are the reference's, layer by layer.
TEST_P(MlpTest, LossAndGradientsAgreeWithTheReference) {
  const std::unique_ptr<Mlp> model = MakeInitialized(widths_, device_, kSamples, 5);
  const compute::LossSum loss = ForwardAndBackward(*model, samples_.All());
  const ReferenceResult reference = ReferenceOf(widths_, *model, samples_);
  EXPECT_NEAR(loss.loss, reference.loss, 1e-5 * reference.loss);
  for (int layer = 0; layer < model->layer_count(); ++layer) {
    EXPECT_LE(RelativeDistance(HostValues<float>(model->gradients()), reference.gradient,
                               model->ParameterBegin(layer), model->ParameterBegin(layer + 1)),
              1e-4)
        << "layer " << layer;
  }
}

TEST_P(MlpTest, MicroBatchesOfAnySizeAddUpToTheBatch) {
  const std::unique_ptr<Mlp> model = MakeInitialized(widths_, device_, kSamples, 5);
  double loss = 0;
  for (const auto& [first, last] : {std::pair{0, 6}, {6, 7}, {7, 13}}) {
    loss += ForwardAndBackward(*model, samples_.Part(first, last)).loss;
  }
  const ReferenceResult reference = ReferenceOf(widths_, *model, samples_);
  EXPECT_LE(RelativeDistance(HostValues<float>(model->gradients()), reference.gradient, 0,
                             model->parameter_count()),
            1e-4);
  EXPECT_NEAR(loss, reference.loss, 1e-5 * reference.loss);
}

TEST_P(MlpTest, ABackwardLayerCompletesItsOwnGradientsOnly) {
  const std::unique_ptr<Mlp> model = MakeInitialized(widths_, device_, kSamples, 5);
  const Batch batch = samples_.All();
  ForwardAndBackward(*model, batch);
  const std::span<float> gradients = HostValues<float>(model->gradients());
  const std::vector<float> complete(gradients.begin(), gradients.end());
  ASSERT_TRUE(model->ZeroGradients().ok());
  for (int layer = 0; layer < model->layer_count(); ++layer) {
    ASSERT_TRUE(model->ForwardLayer(layer, batch).ok());
  }
  ASSERT_TRUE(model->Loss(batch, /*scale=*/1.0F).ok());
  for (int layer = model->layer_count() - 1; layer >= 0; --layer) {
    ASSERT_TRUE(model->BackwardLayer(layer, batch).ok());
    for (std::int64_t i = 0; i < model->parameter_count(); ++i) {
      ASSERT_EQ(gradients[i], i < model->ParameterBegin(layer) ? 0.0F : complete[i])
          << "element " << i << " after layer " << layer;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, MlpTest,
                         testing::Values(std::vector{5, 3}, std::vector{1, 1, 2},
                                         std::vector{7, 17, 3}, std::vector{64, 32, 10},
                                         std::vector{9, 33, 5, 21, 4}));

TEST(Mlp, LaysOutParametersLayerAfterLayer) {
  CpuDevice device({});
  const std::unique_ptr<Mlp> model = MakeInitialized({4, 3, 2}, device, 1, 1);
  EXPECT_EQ(model->layer_count(), 2);
  EXPECT_EQ(model->ParameterBegin(0), 0);
  EXPECT_EQ(model->ParameterBegin(1), 15);
  EXPECT_EQ(model->ParameterBegin(2), 23);
  EXPECT_EQ(model->parameter_count(), 23);
  const std::vector<NamedTensor> named = model->NamedParameters();
  ASSERT_EQ(named.size(), 4U);
  EXPECT_EQ(named[0].name, "layers.0.weight");
  EXPECT_THAT(named[0].global_shape, testing::ElementsAre(3, 4, 1, 1));
  EXPECT_EQ(named[3].name, "layers.1.bias");
  EXPECT_THAT(named[3].global_shape, testing::ElementsAre(2, 1, 1, 1));
  EXPECT_EQ(named[3].local.data, model->parameters().data + 21 * sizeof(float));
}

TEST(Mlp, InitializesBySeedWithinTheBoundOfEachLayer) {
  CpuDevice device({});
  const auto values = [&](std::uint64_t seed) {
    const std::unique_ptr<Mlp> model = MakeInitialized({64, 100, 10}, device, 1, seed);
    const std::span<float> all = HostValues<float>(model->parameters());
    return std::vector<float>(all.begin(), all.end());
  };
  const std::vector<float> first = values(1);
  EXPECT_EQ(values(1), first);
  EXPECT_NE(values(2), first);
  const auto largest = [&](std::int64_t begin, std::int64_t end) {
    float most = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      most = std::max(most, std::abs(first[i]));
    }
    return most;
  };
  EXPECT_LE(largest(0, 6500), 1.0F / 8);
  EXPECT_GT(largest(0, 6500), 0.99F / 8);
  EXPECT_LE(largest(6500, 7510), 0.1F);
  EXPECT_GT(largest(6500, 7510), 0.099F);
}

TEST(Mlp, ZeroGradientsReachesTheTail) {
  CpuDevice device({});
  const std::unique_ptr<Mlp> model = MakeInitialized({2, 2}, device, 1, 1);
  compute::TensorView with_tail = model->gradients();
  with_tail.shape[0] += kGradientTail;
  const std::span<float> values = HostValues<float>(with_tail);
  ASSERT_EQ(values.size(), 8U);
  std::fill(values.begin(), values.end(), 3.0F);
  ASSERT_TRUE(model->ZeroGradients().ok());
  EXPECT_THAT(values, testing::Each(0.0F));
}

TEST(Mlp, CountsItsMemoryByKind) {
  CpuDevice device({});
  const std::unique_ptr<Mlp> model = MakeInitialized({64, 32, 10}, device, 16, 1);
  const auto peak = [&](MemoryKind kind) {
    return device.memory().at(static_cast<std::size_t>(kind)).peak;
  };
  constexpr Bytes kParameters = 65 * 32 + 33 * 10;
  EXPECT_EQ(peak(MemoryKind::kWeights), kParameters * 4);
  EXPECT_EQ(peak(MemoryKind::kGradients), (kParameters + kGradientTail) * 4);
  // Of the largest batch so far.
  Samples samples = Draw(16, 64, 10, 1);
  EXPECT_EQ(peak(MemoryKind::kActivations), 0);
  ForwardAndBackward(*model, samples.Part(0, 5));
  EXPECT_EQ(peak(MemoryKind::kData), 5 * (64 + 1) * 4);
  ForwardAndBackward(*model, samples.All());
  ForwardAndBackward(*model, samples.Part(0, 5));
  EXPECT_EQ(peak(MemoryKind::kData), 16 * (64 + 1) * 4);
  // Two activations, and two gradients of the widest.
  EXPECT_EQ(peak(MemoryKind::kActivations), 16 * (32 + 10 + 2 * 32) * 4);
  EXPECT_EQ(peak(MemoryKind::kOptimizer), 0);
}

TEST(Mlp, SaysWhichMemoryDidNotFit) {
  CpuDevice device({.cap = 20'000});
  const std::unique_ptr<Mlp> model = MakeInitialized({64, 32, 10}, device, 16, 1);
  Samples samples = Draw(16, 64, 10, 1);
  const absl::Status refused = model->ForwardLayer(0, samples.All());
  ASSERT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(refused), testing::HasSubstr("data asked for 4096 bytes; in use: weights "
                                                     "9640, gradients 9648"));
}

TEST(Mlp, RefusesMoreSamplesThanItWasMadeFor) {
  CpuDevice device({});
  const std::unique_ptr<Mlp> model = MakeInitialized({3, 2}, device, 4, 1);
  Samples samples = Draw(5, 3, 2, 1);
  EXPECT_DEATH(model->ForwardLayer(0, samples.All()).IgnoreError(), "5 samples, made for 4");
}

}  // namespace
}  // namespace ranklab::worker
