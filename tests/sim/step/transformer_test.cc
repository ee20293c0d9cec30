#include "sim/step/transformer.h"

#include <gtest/gtest.h>

#include "sim/step/plan.h"

namespace ranklab::sim {
namespace {

TEST(Transformer, GptParametersAndFlopsEqualTheirClosedForms) {
  const Transformer model = FindTransformer("gpt3-175b").value();
  EXPECT_NEAR(ParametersOf(model) / 1e9, 174.6158223, 1e-6);
  const double l = 96, h = 12288, v = 51200, s = 2048, b = 1536;
  const double full = 96 * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  EXPECT_NEAR(FullRecomputeFlops(model, b) / full, 1, 1e-12);
  const double plain = 72 * b * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h));
  EXPECT_NEAR(ModelFlops(model, b) / plain, 1, 1e-12);
  // 138 TFLOP/s on 1,024 devices: 31.9 s (Megatron-LM's README).
  EXPECT_NEAR(FullRecomputeFlops(model, b) / (138e12 * 1024), 31.92206432, 1e-6);
  EXPECT_NEAR(SelectiveRecomputeFlops(model, b) / ModelFlops(model, b), 1 + s / (6 * h), 1e-3);
}

TEST(Transformer, PresetsHaveTheSizeOfTheirName) {
  const std::pair<const char*, double> sizes[] = {
      {"gpt2-1.5b", 1.56},  {"megatron-39b", 39.1}, {"megatron-1t", 1008},
      {"llama-7b", 6.74},   {"llama-70b", 69.0},    {"llama3-8b", 8.03},
      {"llama3-70b", 70.6}, {"llama3-405b", 405.9}, {"mixtral-8x7b", 46.7}};
  for (const auto& [name, billions] : sizes) {
    EXPECT_NEAR(ParametersOf(FindTransformer(name).value()) / (billions * 1e9), 1, 0.01) << name;
  }
}

TEST(Transformer, UnknownNameGetsASuggestion) {
  const auto found = FindTransformer("gpt3-175");
  EXPECT_EQ(found.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(found.status().ToString().find("gpt3-175b"), std::string::npos);
}

TEST(ParallelPlan, RefusesWhatDoesNotDivide) {
  const Transformer model = FindTransformer("gpt3-175b").value();
  EXPECT_TRUE(CheckPlan(model, {.data = 2, .tensor = 8, .pipeline = 8, .global_batch = 64}).ok());
  EXPECT_FALSE(CheckPlan(model, {.tensor = 7}).ok());
  EXPECT_FALSE(CheckPlan(model, {.pipeline = 7}).ok());
  EXPECT_FALSE(CheckPlan(model, {.data = 3, .global_batch = 4}).ok());
  EXPECT_FALSE(CheckPlan(model, {.data = 0}).ok());
  EXPECT_FALSE(CheckPlan(model, {.data = 1 << 20, .tensor = 8, .global_batch = 1 << 20}).ok());
  EXPECT_FALSE(CheckPlan(model, {.pipeline = 8, .interleave = 2, .global_batch = 8}).ok());
  EXPECT_FALSE(
      CheckPlan(
          model,
          {.pipeline = 8, .order = PipelineOrder::kInterleaved, .interleave = 2, .global_batch = 9})
          .ok());
}

}  // namespace
}  // namespace ranklab::sim
