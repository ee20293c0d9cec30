#include <absl/strings/str_format.h>

#include "core/status.h"
#include "sim/step/training_step.h"
#include "sim/validation/check.h"
#include "sim/validation/published_table.h"

namespace ranklab::sim {

absl::StatusOr<Comparison> CompareMultiNode() {
  ASSIGN_OR_RETURN(const Machine machine, FindMachine("a100", "vtrain_a100"));
  const Table table = PublishedTable(Published::kMultiNode);
  Comparison comparison{.unit = "s",
                        .note =
                            "the fabric between the nodes is not published: its bandwidth is "
                            "fitted; gradients of 2 bytes, nothing overlaps"};
  for (int row = 0; row < table.rows(); ++row) {
    const Transformer model = {.layers = table.Integer(row, "layers"),
                               .hidden = table.Integer(row, "hidden"),
                               .heads = table.Integer(row, "heads"),
                               .groups = table.Integer(row, "heads"),
                               .feed_forward = 4 * table.Integer(row, "hidden"),
                               .vocabulary = 51200,
                               .sequence = table.Integer(row, "seq")};
    const ParallelPlan plan = {.data = table.Integer(row, "dp"),
                               .tensor = table.Integer(row, "tp"),
                               .pipeline = table.Integer(row, "pp"),
                               .micro_batch = table.Integer(row, "micro_batch"),
                               .global_batch = table.Integer(row, "global_batch"),
                               .recompute = Recompute::kFull,
                               .gradient_bytes = 2};
    ASSIGN_OR_RETURN(const PlayedStep step, PlayStep(machine, model, plan));
    const int number = table.Integer(row, "row");
    comparison.rows.push_back(
        {.name = absl::StrFormat("row %d: %sB tp %d dp %d pp %d, micro-batch %d", number,
                                 table.Text(row, "params_b"), plan.tensor, plan.data, plan.pipeline,
                                 plan.micro_batch),
         .published = table.Number(row, "iteration_ms") / 1e3,
         .predicted = step.time.seconds,
         .fitted = number % 4 == 1 || number == 40});
  }
  return comparison;
}

}  // namespace ranklab::sim
