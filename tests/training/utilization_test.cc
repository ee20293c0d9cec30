// The check value of a tiny gpt: 6 N + 12 L d s by hand.
#include "worker/utilization.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compute/device.h"
#include "core/status.h"
#include "experiment/lab_reader.h"
#include "transport/tcp/live_loop.h"
#include "worker/matrix_rate.h"
#include "worker/model.h"

namespace ranklab::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

experiment::LabSpec Read(const std::string& text) {
  const auto lab = experiment::ReadLab("name: t\n" + text, "t.yaml", {});
  EXPECT_TRUE(lab.ok()) << MessageOf(lab.status());
  return lab.ok() ? lab->parts[0].cells[0].spec : experiment::LabSpec{};
}

const char* const kTinyGpt =
    "model: {kind: gpt, layers: 4, hidden: 128, heads: 4, context: 64}\n"
    "data: {kind: text, file: t.yaml}\n";

TEST(Utilization, FlopsOfATinyGptAreThoseOfTheTextbook) {
  const auto work = WorkOf(Read(std::string(kTinyGpt) + "train: {steps: 4, global_batch: 4}\n"));
  EXPECT_EQ(work.tokens, 64);
  EXPECT_EQ(work.parameters, 834'304);
  EXPECT_EQ(work.model_flops / 64, 5'399'040);
  EXPECT_EQ(work.hardware_flops, work.model_flops);
  EXPECT_THAT(work.formula, HasSubstr("6 N + 12 L d s FLOPs a token"));
}

TEST(Utilization, WhatIsComputedAgainIsTheHardwaresAlone) {
  const auto work =
      WorkOf(Read(std::string(kTinyGpt) + "train: {steps: 4, global_batch: 4, recompute: true}\n"));
  const double again = 4 * (16.0 * 128 * 128 + 4.0 * 128 * 64);  // a token
  EXPECT_EQ(work.hardware_flops - work.model_flops, 64 * again);
  EXPECT_LT(work.hardware_flops / work.model_flops, 4.0 / 3) << "a whole forward pass more";
  EXPECT_THAT(work.formula, HasSubstr("HFU adds"));
}

TEST(Utilization, CountsTheParametersThatTheModelHas) {
  for (const std::string& model :
       {std::string("model: {kind: mlp, layers: [64, 128, 10]}\n"), std::string(kTinyGpt),
        std::string("model: {kind: gpt, layers: 1, hidden: 8, heads: 2, context: 4, tied: false}\n"
                    "data: {kind: grammar, vocabulary: 5}\n")}) {
    const auto spec = Read(model + "train: {steps: 4, global_batch: 4}\n");
    compute::CpuDevice device({.threads = 1});
    const auto made = MakeModel(spec, device, /*max_samples=*/1);
    ASSERT_TRUE(made.ok()) << MessageOf(made.status());
    EXPECT_EQ(WorkOf(spec).parameters, (*made)->parameter_count()) << model;
  }
}

TEST(Utilization, ThePeakIsNamedWithItsPrecision) {
  const std::string mlp = "model: {kind: mlp, layers: [64, 10]}\ncompute: {model: a100}\n";
  const auto fp32 = WorkOf(Read(mlp + "train: {steps: 4, global_batch: 4}\n"));
  EXPECT_EQ(fp32.peak_flops, 19.5e12);
  EXPECT_THAT(fp32.peak, AllOf(HasSubstr("A100"), HasSubstr("fp32"), HasSubstr("19.5 TFLOP/s")));
  const auto bf16 = WorkOf(Read(mlp + "train: {steps: 4, global_batch: 4, precision: bf16}\n"));
  EXPECT_EQ(bf16.peak_flops, 312e12);
  EXPECT_THAT(bf16.peak, HasSubstr("bf16"));
  const auto native =
      WorkOf(Read("model: {kind: mlp, layers: [64, 10]}\ntrain: {steps: 4, global_batch: 4}\n"));
  EXPECT_EQ(native.peak_flops, 0) << "each rank measures its own";
  EXPECT_THAT(native.peak, HasSubstr("measured"));
}

TEST(MatrixRate, IsPositiveInEveryPrecisionAndLeavesNoMemory) {
  transport::LiveLoop loop;
  compute::CpuDevice device({.threads = 1});
  for (const compute::DType dtype :
       {compute::DType::kFloat32, compute::DType::kBFloat16, compute::DType::kFloat16}) {
    const auto rate = MeasureMatrixRate(device, dtype, loop);
    ASSERT_TRUE(rate.ok()) << MessageOf(rate.status());
    EXPECT_GT(*rate, 0);
  }
  for (const compute::MemoryCount& count : device.memory()) {
    EXPECT_EQ(count.now, 0);
  }
}

}  // namespace
}  // namespace ranklab::worker
