#include "sim/step/training_step.h"

#include <gtest/gtest.h>

#include "sim/step/memory.h"

namespace ranklab::sim {
namespace {

// Equal stages, no cost but the layers': messages, ends, update and gradients take nothing.
Machine IdealMachine() {
  Machine machine = FindMachine("a100", "dgx_a100_hdr").value();
  machine.calibration.collective_seconds = 0;
  machine.calibration.update_bytes = 0;
  machine.calibration.kernel_seconds = 0;
  machine.fabric.inside = machine.fabric.between = 1e30;
  machine.fabric.inside_hop = machine.fabric.between_hop = 0;
  return machine;
}

Transformer ModelWithoutEnds() {
  Transformer model = FindTransformer("gpt3-175b").value();
  model.vocabulary = 0;
  model.tied = model.learned_positions = false;
  return model;
}

TEST(TrainingStep, IdealBubbleIsTheClosedForm) {
  const Transformer model = ModelWithoutEnds();
  for (const int m : {8, 16, 64}) {
    for (const PipelineOrder order : {PipelineOrder::kGpipe, PipelineOrder::k1F1B}) {
      const ParallelPlan plan = {.tensor = 8, .pipeline = 8, .order = order, .global_batch = m};
      const PlayedStep step = PlayStep(IdealMachine(), model, plan).value();
      // The embedding's bytes on the first stage are what differs from equal stages: below 1e-3.
      EXPECT_NEAR(step.time.bubble / step.time.seconds, 7.0 / (m + 7), 2e-3) << m;
    }
    const ParallelPlan interleaved = {.tensor = 8,
                                      .pipeline = 8,
                                      .order = PipelineOrder::kInterleaved,
                                      .interleave = 3,
                                      .global_batch = m};
    const PlayedStep step = PlayStep(IdealMachine(), model, interleaved).value();
    EXPECT_NEAR(step.time.bubble / step.time.seconds, 7.0 / 3 / (m + 7.0 / 3), 3e-3) << m;
  }
}

TEST(TrainingStep, PartsSumUpToTheStep) {
  const Machine machine = FindMachine("a100", "dgx_a100_hdr").value();
  const Transformer model = FindTransformer("megatron-22b").value();
  for (int zero = 0; zero < 4; ++zero) {
    for (const bool overlap : {false, true}) {
      const ParallelPlan plan = {.data = 8,
                                 .tensor = 8,
                                 .global_batch = 64,
                                 .zero = zero,
                                 .recompute = Recompute::kFull,
                                 .overlap_gradients = overlap};
      const StepTime time = PlayStep(machine, model, plan).value().time;
      const double sum =
          time.compute + time.tensor + time.pipeline + time.gradients + time.update + time.bubble;
      // Overlapped compute is lengthened; that part is counted as waiting.
      EXPECT_NEAR(sum / time.seconds, 1, 1e-9);
      EXPECT_GT(time.mfu, 0.05);
      EXPECT_LT(time.hfu, 0.76);
      EXPECT_NEAR(time.hfu / time.mfu, 4.0 / 3, 0.03);
    }
  }
}

TEST(TrainingStep, OverlapHidesGradientsAndSlowsCompute) {
  const Machine machine = FindMachine("a100", "dgx_a100_hdr").value();
  const Transformer model = FindTransformer("megatron-7.5b").value();
  ParallelPlan plan = {.data = 16,
                       .tensor = 4,
                       .micro_batch = 8,
                       .global_batch = 128,
                       .recompute = Recompute::kFull};
  const StepTime apart = PlayStep(machine, model, plan).value().time;
  plan.overlap_gradients = true;
  const StepTime together = PlayStep(machine, model, plan).value().time;
  EXPECT_LT(together.seconds, apart.seconds);
  EXPECT_LT(together.gradients, apart.gradients / 2);
  Machine undisturbed = machine;
  undisturbed.calibration.overlap_slowdown = 0;
  EXPECT_LT(PlayStep(undisturbed, model, plan).value().time.seconds, together.seconds);
}

TEST(TrainingStep, MoreTensorRanksThanANodeHasCostMore) {
  const Machine machine = FindMachine("a100", "dgx_a100_hdr").value();
  const Transformer model = FindTransformer("gpt3-175b").value();
  const auto exposed = [&](int tensor) {
    const ParallelPlan plan = {.data = 128 / tensor,
                               .tensor = tensor,
                               .pipeline = 8,
                               .global_batch = 1536,
                               .recompute = Recompute::kFull};
    return PlayStep(machine, model, plan).value().time.tensor;
  };
  EXPECT_GT(exposed(16), 2 * exposed(8));
}

TEST(TrainingStep, LowerBoundIsOne) {
  const Machine machine = FindMachine("a100", "dgx_a100_hdr").value();
  const Transformer model = FindTransformer("megatron-39b").value();
  for (const int pipeline : {1, 2, 4, 8}) {
    for (const int interleave : {1, 2, 3}) {
      for (const bool overlap : {false, true}) {
        const ParallelPlan plan = {
            .data = 64 / pipeline,
            .tensor = 8,
            .pipeline = pipeline,
            .order = interleave > 1 ? PipelineOrder::kInterleaved : PipelineOrder::k1F1B,
            .interleave = interleave,
            .global_batch = 1536,
            .zero = overlap ? 1 : 0,
            .recompute = Recompute::kSelective,
            .overlap_gradients = overlap};
        if (!CheckPlan(model, plan).ok()) {
          continue;
        }
        const double seconds = PlayStep(machine, model, plan).value().time.seconds;
        const double bound = StepLowerBound(machine, model, plan);
        EXPECT_LE(bound, seconds * (1 + 1e-12)) << DescribePlan(plan);
        EXPECT_GT(bound, 0.8 * seconds) << DescribePlan(plan);
      }
    }
  }
}

TEST(TaskGraph, RefusesTasksThatWaitForEachOther) {
  TaskGraph graph;
  const TaskGraph::Id first = graph.Add({.stream = 0, .seconds = 1}, {});
  const TaskGraph::Id second = graph.Add({.stream = 1, .seconds = 1}, {first});
  graph.Wait(first, second);
  EXPECT_EQ(graph.Play().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(TaskGraph, StreamsOverlapAndTasksWait) {
  TaskGraph graph;
  const TaskGraph::Id a = graph.Add({.stream = 0, .seconds = 2}, {});
  const TaskGraph::Id b = graph.Add({.stream = 1, .seconds = 3}, {a});
  graph.Add({.stream = 0, .seconds = 1}, {});
  graph.Add({.stream = 0, .seconds = 1}, {b});
  const PlayedGraph played = graph.Play().value();
  EXPECT_EQ(played.begins, (std::vector<double>{0, 2, 2, 5}));
  EXPECT_DOUBLE_EQ(played.seconds, 6);
}

}  // namespace
}  // namespace ranklab::sim
