#include "core/status.h"
#include "sim/step/memory.h"
#include "sim/step/training_step.h"
#include "sim/validation/check.h"
#include "sim/validation/published_table.h"

namespace ranklab::sim {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;

struct Run {
  Transformer model{};
  ParallelPlan plan{};
};

// A row of table 5: full recompute with tensor parallelism alone.
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
  run.plan.interleave = table.Integer(row, "interleave");
  run.plan.order = run.plan.interleave > 1 ? PipelineOrder::kInterleaved : PipelineOrder::k1F1B;
  run.plan.global_batch = table.Integer(row, "global_batch");
  run.plan.micro_batch = table.Integer(row, "micro_batch");
  run.plan.recompute = Recompute::kFull;
  return run;
}

ParallelPlan SelectiveWithSequenceParallel(ParallelPlan plan) {
  plan.recompute = Recompute::kSelective;
  plan.sequence_parallel = true;
  return plan;
}

double LayersGib(const Transformer& model, const ParallelPlan& plan) {
  return LayersInFlight(model, plan, 0) * LayerActivationBytes(model, plan) / kGib;
}

// The quantities of figures 1 (GiB) and 7 (percent of the tensor-parallel baseline).
double MemoryQuantity(const Run& run, const std::string& quantity) {
  ParallelPlan plan = run.plan;
  plan.recompute = Recompute::kNone;
  const double layer_baseline = LayerActivationBytes(run.model, plan);
  if (quantity == "params_and_optimizer") {
    return LayerParametersOnDevice(run.model, plan) * StateBytesPerParameter(plan) / kGib;
  }
  if (quantity == "activations_tp_baseline") {
    return LayersGib(run.model, plan);
  }
  if (quantity == "activations_sp_selective") {
    return LayersGib(run.model, SelectiveWithSequenceParallel(plan));
  }
  if (quantity == "rel_full_recompute") {
    plan.recompute = Recompute::kFull;
  }
  plan.sequence_parallel = quantity == "rel_seq_par" || quantity == "rel_both";
  if (quantity == "rel_selective" || quantity == "rel_both") {
    plan.recompute = Recompute::kSelective;
  }
  return 100 * LayerActivationBytes(run.model, plan) / layer_baseline;
}

}  // namespace

absl::StatusOr<Comparison> CompareMemory() {
  const Table times = PublishedTable(Published::kStepTimes);
  const Table table = PublishedTable(Published::kMemory);
  Comparison comparison{.unit = "GiB, %",
                        .note =
                            "GiB a device (layers only), and percent of the tensor-parallel "
                            "baseline, which were read off a figure to about 0.15 points"};
  for (int row = 0; row < table.rows(); ++row) {
    for (int model = 0; model < times.rows(); ++model) {
      if (times.Text(model, "model") == table.Text(row, "model")) {
        const std::string& quantity = table.Text(row, "quantity");
        comparison.rows.push_back({.name = table.Text(row, "model") + " " + quantity,
                                   .published = table.Number(row, "value"),
                                   .predicted = MemoryQuantity(RunOf(times, model), quantity)});
      }
    }
  }
  return comparison;
}

absl::StatusOr<Comparison> CompareStepTimes() {
  ASSIGN_OR_RETURN(const Machine machine, FindMachine("a100", "dgx_a100_hdr"));
  const Table table = PublishedTable(Published::kStepTimes);
  Comparison comparison{.unit = "s", .note = "micro-batch, interleaving and degrees as published"};
  for (int row = 0; row < table.rows(); ++row) {
    const Run run = RunOf(table, row);
    const std::string& name = table.Text(row, "model");
    const bool fitted = name == "22B" || name == "530B";
    ASSIGN_OR_RETURN(const PlayedStep full, PlayStep(machine, run.model, run.plan));
    comparison.rows.push_back({.name = name + " full recompute",
                               .published = table.Number(row, "full_recompute_s"),
                               .predicted = full.time.seconds,
                               .fitted = fitted});
    ASSIGN_OR_RETURN(const PlayedStep selective,
                     PlayStep(machine, run.model, SelectiveWithSequenceParallel(run.plan)));
    comparison.rows.push_back({.name = name + " selective, sequence parallel",
                               .published = table.Number(row, "selective_sp_s"),
                               .predicted = selective.time.seconds,
                               .fitted = fitted});
  }
  return comparison;
}

}  // namespace ranklab::sim
