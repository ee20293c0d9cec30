#include "sim/step/plan.h"

#include <algorithm>
#include <array>

#include "core/status.h"

namespace ranklab::sim {
namespace {

constexpr int kMaxDevices = 1 << 20;
constexpr int kMaxMicroBatches = 1 << 14;

struct Division {
  const char* cut;
  long total;
  const char* by;
  long parts;
};

absl::Status CheckDivisions(const Transformer& model, const ParallelPlan& plan) {
  const long chunks = static_cast<long>(plan.pipeline) * plan.interleave;
  const std::array divisions = {
      Division{"heads", model.heads, "tensor", plan.tensor},
      Division{"groups of keys and values", std::max(model.groups, plan.tensor), "tensor",
               plan.tensor},
      Division{"feed-forward", model.feed_forward, "tensor", plan.tensor},
      Division{"sequence", model.sequence, "context",
               2L * plan.context / (plan.context > 1 ? 1 : 2)},
      Division{"layers", model.layers, "pipeline x interleave", chunks},
      Division{"experts", model.experts, "expert", plan.expert},
      Division{"data", plan.data, "expert", plan.expert},
      Division{"global batch", plan.global_batch, "data x micro-batch",
               static_cast<long>(plan.data) * plan.micro_batch},
  };
  for (const Division& division : divisions) {
    if (division.total % division.parts != 0) {
      return InvalidArgument("%s %d is not divisible by %s %d", division.cut, division.total,
                             division.by, division.parts);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPlan(const Transformer& model, const ParallelPlan& plan) {
  const std::array<int, 8> degrees = {plan.data,        plan.tensor,      plan.pipeline,
                                      plan.context,     plan.expert,      plan.interleave,
                                      plan.micro_batch, plan.global_batch};
  double devices = 1;
  for (std::size_t i = 0; i < degrees.size(); ++i) {
    if (degrees[i] < 1 || degrees[i] > kMaxDevices) {
      return InvalidArgument("a degree or batch of %d; from 1 to %d", degrees[i], kMaxDevices);
    }
    devices *= i < 4 ? degrees[i] : 1;
  }
  if (devices > kMaxDevices) {
    return InvalidArgument("%.0f devices; at most %d", devices, kMaxDevices);
  }
  if (plan.zero < 0 || plan.zero > 3) {
    return InvalidArgument("ZeRO %d; 0, 1, 2 or 3", plan.zero);
  }
  if ((plan.order == PipelineOrder::kInterleaved) != (plan.interleave > 1)) {
    return InvalidArgument("%d chunks a stage: more than one if, and only if, interleaved",
                           plan.interleave);
  }
  RETURN_IF_ERROR(CheckDivisions(model, plan));
  if (plan.micro_batches() > kMaxMicroBatches) {
    return InvalidArgument("%d micro-batches; at most %d", plan.micro_batches(), kMaxMicroBatches);
  }
  if (plan.interleave > 1 && (plan.pipeline < 2 || plan.micro_batches() % plan.pipeline != 0)) {
    return InvalidArgument(
        "interleaving needs several stages and a multiple of them as "
        "micro-batches: %d stages, %d micro-batches",
        plan.pipeline, plan.micro_batches());
  }
  if (plan.zero >= 2 && plan.pipeline > 1) {
    return InvalidArgument(
        "ZeRO-%d with %d stages: gradients and weights would be exchanged for "
        "every micro-batch; use ZeRO-1",
        plan.zero, plan.pipeline);
  }
  return absl::OkStatus();
}

std::string DescribePlan(const ParallelPlan& plan) {
  constexpr std::array kOrders = {"GPipe", "1F1B", "interleaved"};
  constexpr std::array kRecompute = {"no recompute", "selective recompute", "full recompute"};
  std::string words = absl::StrFormat("tp %d pp %d dp %d", plan.tensor, plan.pipeline, plan.data);
  words += plan.context > 1 ? absl::StrFormat(" cp %d", plan.context) : "";
  words += plan.expert > 1 ? absl::StrFormat(" ep %d", plan.expert) : "";
  words += absl::StrFormat(", micro-batch %d x %d", plan.micro_batch, plan.micro_batches());
  if (plan.pipeline > 1) {
    words += absl::StrFormat(", %s", kOrders.at(static_cast<std::size_t>(plan.order)));
    words += plan.interleave > 1 ? absl::StrFormat(" x%d", plan.interleave) : "";
  }
  words += absl::StrFormat(", %s", kRecompute.at(static_cast<std::size_t>(plan.recompute)));
  words += plan.sequence_parallel ? ", sequence parallel" : "";
  words += plan.zero > 0 ? absl::StrFormat(", ZeRO-%d", plan.zero) : "";
  return words;
}

}  // namespace ranklab::sim
