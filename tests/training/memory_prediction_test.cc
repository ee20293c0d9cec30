// The closed forms of a worker's memory against what the device counted after a step.
#include "worker/memory_prediction.h"

#include <gtest/gtest.h>

#include "compute/device.h"
#include "compute/optimizer.h"
#include "worker/lab_optimizer.h"
#include "worker/precision.h"
#include "worker/wire_gradients.h"

namespace ranklab::worker {
namespace {

constexpr std::int64_t kSamples = 24;

struct Counted {
  MemoryPrediction predicted;
  std::vector<compute::MemoryCount> memory;
};

// As many samples as the model takes, all zero.
void ForwardOfTheLargestBatch(const experiment::LabSpec& spec, Model& model) {
  std::vector<float> inputs(static_cast<std::size_t>(kSamples) * 64);
  std::vector<std::int32_t> tokens(inputs.size());
  Batch batch{.inputs = compute::HostView(std::span(inputs)), .labels = {}};
  batch.inputs.shape = {kSamples, 64, 1, 1};
  if (const auto* gpt = std::get_if<experiment::GptSpec>(&spec.model)) {
    batch.inputs = compute::Slice(compute::HostView(std::span(tokens)), 0, kSamples * gpt->context);
    batch.inputs.shape = {kSamples, gpt->context, 1, 1};
  }
  for (int layer = 0; layer < model.layer_count(); ++layer) {
    EXPECT_TRUE(model.ForwardLayer(layer, batch).ok());
  }
}

// Makes what a worker makes, and takes one optimizer step.
Counted CountFor(const experiment::LabSpec& spec) {
  Counted counted;
  compute::CpuDevice device({});
  auto model = MakeModel(spec, device, kSamples);
  EXPECT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE((*model)->Initialize(1).ok());
  ForwardOfTheLargestBatch(spec, **model);
  std::unique_ptr<compute::Optimizer> optimizer;
  if (!WorkerUpdateOf(spec).optimizer.empty()) {
    optimizer = *compute::MakeOptimizer({.name = spec.train.optimizer}, device);
    EXPECT_TRUE(optimizer->Apply((*model)->parameters(), (*model)->gradients(), 1).ok());
  }
  const auto wire = WireGradients::Make(**model, WireOf(spec));
  EXPECT_TRUE(wire.ok());
  counted.predicted = PredictMemory(spec, **model);
  counted.memory = device.memory();
  return counted;
}

experiment::LabSpec SpecWith(const char* optimizer) {
  experiment::LabSpec spec;
  spec.model = experiment::MlpSpec{{64, 96, 32, 10}};
  spec.train.optimizer = optimizer;
  return spec;
}

void ExpectEqual(const Counted& counted) {
  for (const compute::MemoryCount& count : counted.memory) {
    if (const auto& predicted = counted.predicted.at(static_cast<std::size_t>(count.kind))) {
      EXPECT_EQ(count.peak, *predicted) << compute::NameOf(count.kind);
    } else {
      EXPECT_EQ(count.kind, compute::MemoryKind::kCommunication);
    }
  }
}

TEST(PredictMemory, IsWhatTheDeviceCountsForAnMlpWithMomentum) {
  experiment::LabSpec spec = SpecWith("momentum");
  spec.exchange.kind = experiment::CollectiveSpec{};
  const Counted counted = CountFor(spec);
  ExpectEqual(counted);
  const Bytes parameters = 65 * 96 + 97 * 32 + 33 * 10;
  EXPECT_EQ(counted.predicted.at(0), 4 * parameters);
  EXPECT_EQ(counted.predicted.at(2), 4 * parameters);
  EXPECT_EQ(counted.predicted.at(3), 4 * kSamples * (96 + 32 + 10 + 2 * 96));
}

TEST(PredictMemory, IsWhatTheDeviceCountsForAGptWithAdamW) {
  for (const bool recompute : {false, true}) {
    experiment::LabSpec spec = SpecWith("adamw");
    spec.model = experiment::GptSpec{.layers = 3, .hidden = 24, .heads = 4, .context = 16};
    spec.data.kind = "text";
    spec.train.recompute = recompute;
    spec.exchange.kind = experiment::CollectiveSpec{};
    const Counted counted = CountFor(spec);
    ExpectEqual(counted);
    EXPECT_EQ(counted.predicted.at(2), 2 * *counted.predicted.at(0));
    EXPECT_TRUE(counted.predicted.at(3).has_value());
  }
}

TEST(PredictMemory, IsWhatTheDeviceCountsIn16Bits) {
  for (const char* precision : {"bf16", "fp16"}) {
    experiment::LabSpec spec = SpecWith("adamw");
    spec.train.precision = precision;
    spec.exchange.kind = experiment::CollectiveSpec{};
    spec.exchange.wire_dtype = "bf16";
    ExpectEqual(CountFor(spec));
    spec.model = experiment::GptSpec{.layers = 3, .hidden = 24, .heads = 4, .context = 16};
    spec.data.kind = "text";
    ExpectEqual(CountFor(spec));
  }
}

TEST(PredictMemory, TheOptimizersStateIsNothingForSgdAndOnTheServerForAParameterServer) {
  experiment::LabSpec spec = SpecWith("sgd");
  spec.exchange.kind = experiment::CollectiveSpec{};
  ExpectEqual(CountFor(spec));
  EXPECT_EQ(CountFor(spec).predicted.at(2), 0);
  spec = SpecWith("momentum");
  spec.exchange.kind = experiment::ParameterServerSpec{};
  ExpectEqual(CountFor(spec));
  EXPECT_EQ(CountFor(spec).predicted.at(2), 0);
}

}  // namespace
}  // namespace ranklab::worker
