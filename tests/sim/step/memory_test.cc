#include "sim/step/memory.h"

#include <gtest/gtest.h>

#include "sim/validation/check.h"

namespace ranklab::sim {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;

Transformer Model(const char* name) { return FindTransformer(name).value(); }

// A row of Korthikanti et al., figure 1.
struct Bar {
  const char* model;
  int tensor, pipeline, interleave, micro_batch, global_batch;
  double states, baseline, selective;  // GiB
};

constexpr Bar kBars[] = {
    {"megatron-22b", 8, 1, 1, 4, 4, 45.5625, 59.25, 9.5625},
    {"gpt3-175b", 8, 8, 3, 1, 64, 45.5625, 66.84375, 12.3515625},
    {"megatron-530b", 8, 35, 3, 1, 280, 31.640625, 114.0234375, 23.07617188},
    {"megatron-1t", 8, 64, 1, 1, 512, 32.95898438, 131.25, 26.5625},
};

ParallelPlan PlanOf(const Bar& bar) {
  return {.tensor = bar.tensor,
          .pipeline = bar.pipeline,
          .order = bar.interleave > 1 ? PipelineOrder::kInterleaved : PipelineOrder::k1F1B,
          .interleave = bar.interleave,
          .micro_batch = bar.micro_batch,
          .global_batch = bar.global_batch};
}

double LayersGib(const Transformer& model, const ParallelPlan& plan) {
  return LayersInFlight(model, plan, 0) * LayerActivationBytes(model, plan) / kGib;
}

TEST(Memory, StatesAndActivationsEqualTheClosedFormsOfKorthikanti) {
  for (const Bar& bar : kBars) {
    const Transformer model = Model(bar.model);
    ParallelPlan plan = PlanOf(bar);
    ASSERT_TRUE(CheckPlan(model, plan).ok()) << bar.model << " " << CheckPlan(model, plan);
    const double states = LayerParametersOnDevice(model, plan) * StateBytesPerParameter(plan);
    EXPECT_NEAR(states / kGib, bar.states, 1e-6) << bar.model;
    EXPECT_NEAR(LayersGib(model, plan), bar.baseline, 1e-6) << bar.model;
    plan.recompute = Recompute::kSelective;
    plan.sequence_parallel = true;
    EXPECT_NEAR(LayersGib(model, plan), bar.selective, 1e-6) << bar.model;
  }
}

TEST(Memory, AllPublishedQuantitiesAreMet) {
  const absl::StatusOr<Comparison> memory = CompareMemory();
  ASSERT_TRUE(memory.ok()) << memory.status();
  ASSERT_EQ(memory->rows.size(), 28u);
  for (const ComparedRow& row : memory->rows) {
    // Percentages were read off a figure: 0.15 points.
    EXPECT_NEAR(row.predicted, row.published, 0.15) << row.name;
  }
}

TEST(Memory, ZeroShardsStatesAsPublished) {
  // 7.5e9 parameters on 64 ranks: 120, 31.4, 16.6, 1.9 GB (Rajbhandari et al., SC 2020).
  const double expected[] = {120, 31.40625, 16.640625, 1.875};
  for (int zero = 0; zero < 4; ++zero) {
    const ParallelPlan plan = {.data = 64, .zero = zero, .gradient_bytes = 2};
    EXPECT_NEAR(7.5 * StateBytesPerParameter(plan), expected[zero], 1e-9) << zero;
  }
}

TEST(Memory, ScheduleDecidesHowManyMicroBatchesLive) {
  const Transformer model = Model("gpt3-175b");
  ParallelPlan plan = {.tensor = 8, .pipeline = 8, .global_batch = 64};
  EXPECT_DOUBLE_EQ(LayersInFlight(model, plan, 0), 96);  // p micro-batches of L/p layers
  EXPECT_DOUBLE_EQ(LayersInFlight(model, plan, 7), 12);
  plan.order = PipelineOrder::kGpipe;
  EXPECT_DOUBLE_EQ(LayersInFlight(model, plan, 7), 64 * 12);
  plan.order = PipelineOrder::kInterleaved;
  plan.interleave = 3;
  EXPECT_DOUBLE_EQ(LayersInFlight(model, plan, 0), 96 * (1 + 7.0 / 24));
}

TEST(Memory, SaysWhatWouldFit) {
  const Transformer model = Model("megatron-22b");
  ParallelPlan plan = {.tensor = 8, .micro_batch = 4, .global_batch = 4};
  EXPECT_GT(MemoryOf(model, plan).total(), 80e9);
  EXPECT_EQ(WhatWouldFit(model, plan, 80e9).rfind("selective recompute and sequence", 0), 0u)
      << WhatWouldFit(model, plan, 80e9);
  plan.recompute = Recompute::kFull;
  EXPECT_EQ(WhatWouldFit(model, plan, 80e9), "");
  EXPECT_EQ(WhatWouldFit(model, plan, 1e9),
            "more tensor or pipeline parallelism, or a smaller micro-batch");
}

}  // namespace
}  // namespace ranklab::sim
