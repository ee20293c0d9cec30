#include "worker/predict.h"

#include <gtest/gtest.h>

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

double Exposed(const LabSpec& spec) {
  const auto predicted = PredictStep(spec);
  EXPECT_TRUE(predicted.ok()) << predicted.status();
  return predicted->exposed;
}

TEST(PredictStep, OneBucketWithoutOverlapIsTheRingsClosedForm) {
  LabSpec spec = Spec(4, 0);
  spec.exchange.kind = CollectiveSpec{};
  spec.exchange.overlap = false;
  spec.exchange.first_bucket = spec.exchange.bucket = Bytes{1} << 30;
  const auto preset = fabric::FindPreset("pcie4_x16");
  ASSERT_TRUE(preset.ok());
  const double alpha = static_cast<double>(preset->port.alpha.count()) * 1e-9;
  const double beta = 1.0 / preset->port.bandwidth.bytes_per_second;
  const double size = 4.0 * (64 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10 + kGradientTail);
  EXPECT_NEAR(Exposed(spec), 6 * (alpha + size / 4 * beta), 5e-9);
}

TEST(PredictStep, OneBucketWithoutOverlapIsTheServersClosedForm) {
  LabSpec spec = Spec(4, 2);
  spec.exchange.kind = ParameterServerSpec{};
  spec.exchange.overlap = false;
  spec.exchange.first_bucket = spec.exchange.bucket = Bytes{1} << 30;
  const auto preset = fabric::FindPreset("pcie4_x16");
  ASSERT_TRUE(preset.ok());
  const double alpha = static_cast<double>(preset->port.alpha.count()) * 1e-9;
  const double beta = 1.0 / preset->port.bandwidth.bytes_per_second;
  const double size = 4.0 * (64 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10);
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
