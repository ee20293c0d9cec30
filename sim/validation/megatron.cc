#include "core/status.h"
#include "sim/step/memory.h"
#include "sim/step/training_step.h"
#include "sim/validation/check.h"
#include "sim/validation/published_table.h"

namespace ranklab::sim {
namespace {

struct Run {
  Transformer model{};
  ParallelPlan plan{};
};

Run RunOf(const Table& table, int row) {
  Run run;
  run.model = {.layers = table.Integer(row, "layers"),
               .hidden = table.Integer(row, "hidden"),
               .heads = table.Integer(row, "heads"),
               .groups = table.Integer(row, "heads"),
               .feed_forward = 4 * table.Integer(row, "hidden"),
               .vocabulary = table.Integer(row, "vocab"),
               .sequence = table.Integer(row, "seq")};
  run.plan.tensor = table.Integer(row, "tp");
  run.plan.pipeline = table.Integer(row, "pp");
  run.plan.data = table.Integer(row, "dp");
  run.plan.global_batch = table.Integer(row, "global_batch");
  run.plan.recompute = Recompute::kFull;
  run.plan.gradient_bytes = 2;
  return run;
}

// The micro-batch is not published: the fastest of those that fit.
absl::StatusOr<double> FastestSeconds(const Machine& machine, Run run) {
  double fastest = 0;
  for (const int micro_batch : {1, 2, 4, 8}) {
    run.plan.micro_batch = micro_batch;
    if (!CheckPlan(run.model, run.plan).ok() ||
        MemoryOf(run.model, run.plan).total() > machine.accelerator.memory_bytes) {
      continue;
    }
    ASSIGN_OR_RETURN(const PlayedStep step, PlayStep(machine, run.model, run.plan));
    if (fastest == 0 || step.time.seconds < fastest) {
      fastest = step.time.seconds;
    }
  }
  if (fastest == 0) {
    return FailedPrecondition("no micro-batch of 1, 2, 4 or 8 fits into %.0f GB",
                              machine.accelerator.memory_bytes / 1e9);
  }
  return fastest;
}

}  // namespace

absl::StatusOr<Comparison> CompareWeakScaling() {
  ASSIGN_OR_RETURN(const Machine machine, FindMachine("a100", "dgx_a100_hdr"));
  const Table table = PublishedTable(Published::kWeakScaling);
  Comparison comparison{
      .unit = "TFLOP/s",
      .note =
          "not published, assumed: the fastest micro-batch of 1, 2, 4, 8 that fits, 1F1B "
          "without interleaving"};
  for (int row = 0; row < table.rows(); ++row) {
    const Run run = RunOf(table, row);
    ASSIGN_OR_RETURN(const double seconds, FastestSeconds(machine, run));
    const double flops = FullRecomputeFlops(run.model, run.plan.global_batch);
    const std::string& name = table.Text(row, "params_b");
    comparison.rows.push_back({.name = name + "B on " + table.Text(row, "gpus"),
                               .published = table.Number(row, "tflops_per_gpu"),
                               .predicted = flops / seconds / run.plan.devices() / 1e12,
                               .fitted = name == "1.7" || name == "7.5" || name == "145.6"});
  }
  return comparison;
}

}  // namespace ranklab::sim
