#include "sim/step/layer_cost.h"

#include <algorithm>

namespace ranklab::sim {
namespace {

constexpr double kElement = 2;  // bytes of a 16-bit number
constexpr double kMask = 1;

double TokensOf(const Transformer& model, const ParallelPlan& plan) {
  return static_cast<double>(model.sequence) * plan.micro_batch / plan.context;
}

// Elements that a norm, a dropout and a residual sum go over on one device.
double ElementsOutside(const Transformer& model, const ParallelPlan& plan) {
  return TokensOf(model, plan) * model.hidden / (plan.sequence_parallel ? plan.tensor : 1);
}

// A norm reads and writes; bias, dropout and sum in one kernel read two, write one and a mask.
double NormAndSumBytes(const Transformer& model) {
  return 2 * kElement + 3 * kElement + (model.dropout ? kMask : 0);
}

}  // namespace

double LayerModel::MatrixProduct(double m, double n, double k, double count) const {
  const double flops = 2 * m * n * k * count;
  const double bytes = kElement * (m * k + k * n + m * n) * count;
  return calibration_.kernel_seconds +
         std::max(flops / (accelerator_.tensor_flops * calibration_.matrix_efficiency) *
                      (1 + calibration_.inner_half / k),
                  bytes / (accelerator_.memory_bandwidth * calibration_.memory_efficiency));
}

double LayerModel::MemoryBound(double bytes, int kernels) const {
  return kernels * calibration_.kernel_seconds +
         bytes / (accelerator_.memory_bandwidth * calibration_.memory_efficiency);
}

double LayerModel::TensorCollective(const Transformer& model, const ParallelPlan& plan) const {
  const Group group = GroupOf(fabric_, plan.tensor, 1);
  const double bytes = kElement * TokensOf(model, plan) * model.hidden;
  return plan.sequence_parallel ? 2 * groups_.AllGather(group, bytes)
                                : groups_.AllReduce(group, bytes);
}

PartCost LayerModel::AttentionOf(const Transformer& model, const ParallelPlan& plan) const {
  const double tokens = TokensOf(model, plan);
  const double h = model.hidden;
  const double t = plan.tensor;
  const double heads = model.heads / t;
  const double width = h / model.heads;
  const double qkv = (h + 2.0 * width * std::max<double>(model.groups, t)) / t;
  const double rows = static_cast<double>(model.sequence) / plan.context;
  const double count = heads * plan.micro_batch;
  const double scores = count * rows * model.sequence;

  const double project = MatrixProduct(tokens, qkv, h) + MatrixProduct(tokens, h, h / t);
  // Two products; unfused, softmax reads and writes the scores, dropout reads them, writes them and
  // a mask. A fused core reads queries, keys and values and stores nothing of the scores; it skips
  // the half above the diagonal.
  const double products = MatrixProduct(rows, model.sequence, width, count) +
                          MatrixProduct(rows, width, model.sequence, count);
  const double score_bytes = scores * (2 * kElement + (model.dropout ? 2 * kElement + kMask : 0));
  const bool fused = plan.flash_attention;
  const double core = fused ? products / 2 : products + MemoryBound(score_bytes, 2);
  const double core_backward = fused ? 2.5 * core : 2 * products + MemoryBound(score_bytes, 2);

  const double outside = ElementsOutside(model, plan) * NormAndSumBytes(model);
  const double moves = tokens * qkv * 2 * kElement;  // bias and transposition of heads
  const double rest = MemoryBound(outside + moves, 4);
  PartCost cost{.forward = project + core + rest,
                .core = core,
                .inputs = project + core_backward + rest,
                .weights = project,
                .collective = TensorCollective(model, plan)};
  if (plan.context > 1) {
    // Keys and values of all parts of the sequence, gathered before the core, and scattered after.
    const double bytes = kElement * model.sequence * plan.micro_batch * 2.0 * width *
                         std::max<double>(model.groups, t) / t;
    const double gather = groups_.AllGather(GroupOf(fabric_, plan.context, plan.tensor), bytes);
    cost.forward += gather;
    cost.inputs += 2 * gather;
  }
  return cost;
}

PartCost LayerModel::FeedForwardOf(const Transformer& model, const ParallelPlan& plan) const {
  const double h = model.hidden;
  const double t = plan.tensor;
  const double wide = model.feed_forward / t;
  // A token goes to top_k experts; a device keeps experts / ep of them and gets an equal share.
  const double local = model.experts > 1 ? static_cast<double>(model.experts) / plan.expert : 1;
  const double tokens = TokensOf(model, plan) * model.top_k / local;
  const int up = model.gated ? 2 : 1;
  const double products =
      local * (up * MatrixProduct(tokens, wide, h) + MatrixProduct(tokens, h, wide));
  const double activation = local * tokens * wide * kElement * (up + 1);
  const double outside = ElementsOutside(model, plan) * NormAndSumBytes(model);
  const double rest = MemoryBound(activation + outside, 3);
  PartCost cost{.forward = products + rest,
                .inputs = products + rest + MemoryBound(activation / 2, 0),
                .weights = products,
                .collective = TensorCollective(model, plan)};
  if (plan.expert > 1) {
    const Group group = GroupOf(fabric_, plan.expert, plan.tensor * plan.context);
    const double bytes = kElement * TokensOf(model, plan) * model.top_k * h;
    cost.all_to_all = 2 * groups_.AllToAll(group, bytes);
  }
  return cost;
}

LayerCost LayerModel::LayerOf(const Transformer& model, const ParallelPlan& plan) const {
  return {.attention = AttentionOf(model, plan), .feed_forward = FeedForwardOf(model, plan)};
}

EndsCost LayerModel::EndsOf(const Transformer& model, const ParallelPlan& plan) const {
  const double tokens = TokensOf(model, plan);
  const double columns = static_cast<double>(model.vocabulary) / plan.tensor;
  const double product = MatrixProduct(tokens, columns, model.hidden);
  const double sums = plan.tensor > 1 ? TensorCollective(model, plan) : 0;
  // Logits to 32 bits, their maximum, exponentials, sum: about 4 passes of 4 bytes each way.
  const double loss = MemoryBound(tokens * columns * 4 * 4, 6);
  return {.embedding = MemoryBound(ElementsOutside(model, plan) * 3 * kElement, 3) + sums,
          .head_forward = product + loss,
          .head_backward = 2 * product + loss / 2 + sums};
}

}  // namespace ranklab::sim
