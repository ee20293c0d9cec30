#include "sim/step/pipeline_order.h"

#include <algorithm>

namespace ranklab::sim {
namespace {

// The k-th forward or backward turn of an interleaved stage: p micro-batches a chunk, chunk by
// chunk.
Turn TurnNumber(const ParallelPlan& plan, int k, bool backward) {
  const int p = plan.pipeline;
  const int v = plan.interleave;
  const int chunk = k % (p * v) / p;
  return {.backward = backward,
          .micro_batch = k / (p * v) * p + k % p,
          .chunk = backward ? v - 1 - chunk : chunk};
}

}  // namespace

std::vector<Turn> TurnsOf(const ParallelPlan& plan, int stage) {
  const int turns = plan.micro_batches() * plan.interleave;
  const int behind = plan.pipeline - 1 - stage;
  int warm_up = turns;
  if (plan.order == PipelineOrder::k1F1B) {
    warm_up = std::min(turns, behind);
  } else if (plan.order == PipelineOrder::kInterleaved) {
    warm_up = std::min(turns, 2 * behind + (plan.interleave - 1) * plan.pipeline);
  }
  std::vector<Turn> order;
  order.reserve(2 * static_cast<std::size_t>(turns));
  for (int k = 0; k < warm_up; ++k) {
    order.push_back(TurnNumber(plan, k, false));
  }
  for (int k = warm_up; k < turns; ++k) {
    order.push_back(TurnNumber(plan, k, false));
    order.push_back(TurnNumber(plan, k - warm_up, true));
  }
  for (int k = turns - warm_up; k < turns; ++k) {
    order.push_back(TurnNumber(plan, k, true));
  }
  return order;
}

}  // namespace ranklab::sim
