#include "worker/predict.h"

#include <gtest/gtest.h>

#include "compute/optimizer.h"
#include "core/seconds.h"
#include "core/status.h"
#include "fabric/device_model.h"
#include "fabric/presets.h"

namespace ranklab::worker {
namespace {

using experiment::CollectiveSpec;
using experiment::LabSpec;
using experiment::NoExchange;
using experiment::ParameterServerSpec;

LabSpec Spec(int workers, int servers) {
  LabSpec spec;
  spec.model = experiment::MlpSpec{{64, 512, 512, 10}};
  spec.train.batch_per_worker = 256;
  spec.train.steps = 10;
  spec.cluster.workers = workers;
  spec.cluster.servers = servers;
  spec.compute.model = "a100";
  spec.fabric.preset = "pcie4_x16";
  return spec;
}

constexpr std::int64_t kParameters = 64 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10;

struct AlphaBeta {
  double alpha = 0, beta = 0;  // seconds; seconds a byte
};

// Makes the exchange one message after the step's compute; returns what its closed form is of.
AlphaBeta OneBucket(LabSpec& spec) {
  spec.exchange.overlap = false;
  spec.exchange.first_bucket = spec.exchange.bucket = Bytes{1} << 30;
  const auto preset = fabric::FindPreset(spec.fabric.preset);
  EXPECT_TRUE(preset.ok()) << preset.status();
  return {.alpha = static_cast<double>(preset->port.alpha.count()) * 1e-9,
          .beta = 1.0 / preset->port.bandwidth.bytes_per_second};
}

double Exposed(const LabSpec& spec) {
  const auto predicted = PredictStep(spec);
  EXPECT_TRUE(predicted.ok()) << predicted.status();
  return predicted->exposed;
}

TEST(PredictStep, OneBucketWithoutOverlapIsTheRingsClosedForm) {
  LabSpec spec = Spec(4, 0);
  spec.exchange.kind = CollectiveSpec{};
  const auto [alpha, beta] = OneBucket(spec);
  const double size = 4.0 * (kParameters + kGradientTail);
  EXPECT_NEAR(Exposed(spec), 6 * (alpha + size / 4 * beta), 5e-9);
}

// Recursive doubling over 4 workers: two rounds of the whole buffer.
TEST(PredictStep, EachAlgorithmHasItsOwnClosedForm) {
  LabSpec spec = Spec(4, 0);
  spec.exchange.kind = CollectiveSpec{.algorithm = "recursive_doubling"};
  const auto [alpha, beta] = OneBucket(spec);
  const double size = 4.0 * (kParameters + kGradientTail);
  EXPECT_NEAR(Exposed(spec), 2 * (alpha + size * beta), 5e-9);
}

// The double tree has none for any number of workers, recursive doubling none for three on a live
// network; the ring is the yardstick where a time is needed all the same.
TEST(PredictStep, AnAlgorithmWithoutAClosedFormIsNamed) {
  for (const char* algorithm : {"double_binary_tree", "recursive_doubling"}) {
    LabSpec spec = Spec(3, 0);
    spec.exchange.kind = CollectiveSpec{.algorithm = algorithm};
    const absl::Status status = PredictStep(spec).status();
    EXPECT_TRUE(absl::IsUnimplemented(status));
    EXPECT_EQ(MessageOf(status),
              absl::StrFormat("%s over 3 workers has no closed form", algorithm));
    LabSpec ring = Spec(3, 0);
    ring.exchange.kind = CollectiveSpec{};
    const auto estimated = EstimateStep(spec);
    ASSERT_TRUE(estimated.ok());
    EXPECT_EQ(estimated->step, PredictStep(ring)->step);
  }
}

// A tiny GPT of 834,304 parameters; its vocabulary is known without its data.
TEST(PredictStep, KnowsAGptFromItsLabAlone) {
  LabSpec spec = Spec(4, 0);
  spec.model = experiment::GptSpec{.layers = 4, .hidden = 128, .heads = 4, .context = 64};
  spec.data.kind = "text";
  const auto [alpha, beta] = OneBucket(spec);
  EXPECT_NEAR(Exposed(spec), 6 * (alpha + 4.0 * (834'304 + kGradientTail) / 4 * beta), 5e-9);
  const auto once = PredictStep(spec);
  spec.train.recompute = true;
  const auto twice = PredictStep(spec);
  ASSERT_TRUE(once.ok() && twice.ok());
  EXPECT_GT(twice->compute, 1.15 * once->compute) << "blocks go forward twice";
  EXPECT_LT(twice->compute, 4.0 / 3 * once->compute);
}

TEST(PredictStep, OneBucketWithoutOverlapIsTheServersClosedForm) {
  LabSpec spec = Spec(4, 2);
  spec.exchange.kind = ParameterServerSpec{};
  const auto [alpha, beta] = OneBucket(spec);
  const double size = 4.0 * kParameters;
  EXPECT_NEAR(Exposed(spec), 2 * (alpha + 2 * size * beta), 5e-9);
}

TEST(PredictStep, OverlapNeverCostsAndHelpsWithSeveralBuckets) {
  LabSpec spec = Spec(4, 0);
  spec.exchange.kind = CollectiveSpec{};
  spec.exchange.first_bucket = spec.exchange.bucket = 1;
  const double overlapped = Exposed(spec);
  spec.exchange.overlap = false;
  EXPECT_LT(overlapped, Exposed(spec));
}

TEST(PredictStep, WithoutExchangeOnlyComputeCounts) {
  LabSpec spec = Spec(1, 0);
  spec.exchange.kind = NoExchange{};
  const auto predicted = PredictStep(spec);
  ASSERT_TRUE(predicted.ok());
  EXPECT_EQ(predicted->exposed, 0.0);
  EXPECT_EQ(predicted->step, predicted->compute);
  EXPECT_GT(predicted->compute, 0.0);
}

TEST(PredictStep, ClippingCostsAPassOverTheGradients) {
  LabSpec spec = Spec(4, 0);
  spec.exchange.kind = CollectiveSpec{};
  const auto without = PredictStep(spec);
  spec.train.clip_norm = 1;
  const auto with = PredictStep(spec);
  ASSERT_TRUE(without.ok() && with.ok());
  const auto device = fabric::FindDeviceModel("a100");
  ASSERT_TRUE(device.ok());
  const Nanos pass =
      fabric::TimeOf(*device, compute::CostOfClipFactor(kParameters), spec.compute.op_overhead);
  EXPECT_NEAR(with->compute - without->compute, SecondsOf(pass), 1e-9);
}

TEST(PredictStep, SaysWhatHasNoClosedForm) {
  LabSpec native = Spec(2, 0);
  native.compute.model = "native";
  EXPECT_TRUE(absl::IsUnimplemented(PredictStep(native).status()));
  LabSpec asynchronous = Spec(2, 1);
  asynchronous.exchange.kind = ParameterServerSpec{.staleness_bound = 2};
  EXPECT_TRUE(absl::IsUnimplemented(PredictStep(asynchronous).status()));
}

}  // namespace
}  // namespace ranklab::worker
