#include "sim/step/stage_cost.h"

#include <algorithm>

#include "core/check.h"
#include "sim/step/memory.h"
#include "sim/step/task_graph.h"

namespace ranklab::sim {
namespace {

constexpr double kWeightBytes = 2;

// One layer on a stream of compute and one of collectives.
class LayerGraph {
 public:
  TaskGraph::Id Compute(double seconds, TaskGraph::Id after = TaskGraph::kNone) {
    compute_ += seconds;
    return graph_.Add({.stream = 0, .seconds = seconds}, {after});
  }
  TaskGraph::Id Collective(double seconds, TaskGraph::Id after) {
    return graph_.Add({.stream = 1, .kind = TaskKind::kReduce, .seconds = seconds}, {after});
  }
  PassCost Play() const {
    const absl::StatusOr<PlayedGraph> played = graph_.Play();
    RANKLAB_CHECK(played.ok(), "a layer is a chain");
    return {.compute = compute_, .tensor = std::max(0.0, played->seconds - compute_)};
  }

 private:
  TaskGraph graph_;
  double compute_ = 0;
};

// Forward, part by part: compute, then the sum over the tensor group that the next part needs.
TaskGraph::Id AddForward(LayerGraph& graph, const LayerCost& layer) {
  TaskGraph::Id last = graph.Compute(layer.attention.forward);
  last = graph.Collective(layer.attention.collective, last);
  last = graph.Compute(layer.feed_forward.forward, last);
  return graph.Collective(layer.feed_forward.collective + layer.feed_forward.all_to_all, last);
}

TaskGraph::Id AddBackwardPart(LayerGraph& graph, const PartCost& part, const ParallelPlan& plan,
                              TaskGraph::Id after) {
  const TaskGraph::Id inputs = graph.Compute(part.inputs, after);
  const double collective = part.collective + part.all_to_all;
  if (plan.overlap_tensor) {
    const TaskGraph::Id sum = graph.Collective(collective, inputs);
    graph.Compute(part.weights, inputs);
    return sum;
  }
  return graph.Collective(collective, graph.Compute(part.weights, inputs));
}

PassCost BackwardLayer(const LayerCost& layer, const ParallelPlan& plan) {
  LayerGraph graph;
  TaskGraph::Id last = TaskGraph::kNone;
  if (plan.recompute == Recompute::kFull) {
    last = AddForward(graph, layer);
  } else if (plan.recompute == Recompute::kSelective && !plan.flash_attention) {
    last = graph.Compute(layer.attention.core);
  }
  last = AddBackwardPart(graph, layer.feed_forward, plan, last);
  AddBackwardPart(graph, layer.attention, plan, last);
  return graph.Play();
}

Group DataGroup(const Fabric& fabric, const ParallelPlan& plan) {
  return GroupOf(fabric, plan.data * plan.context, plan.tensor);
}

}  // namespace

double ReduceSeconds(const LayerModel& layers, const Fabric& fabric, const ParallelPlan& plan,
                     double parameters) {
  const Group group = DataGroup(fabric, plan);
  const double bytes = parameters * plan.gradient_bytes;
  return plan.zero > 0 ? layers.groups().AllGather(group, bytes)
                       : layers.groups().AllReduce(group, bytes);
}

double GatherSeconds(const LayerModel& layers, const Fabric& fabric, const ParallelPlan& plan,
                     double parameters) {
  return layers.groups().AllGather(DataGroup(fabric, plan), parameters * kWeightBytes);
}

StageCosts StageCostsOf(const LayerModel& layers, const Fabric& fabric, const Transformer& model,
                        const ParallelPlan& plan) {
  const LayerCost layer = layers.LayerOf(model, plan);
  LayerGraph forward;
  AddForward(forward, layer);
  const int stages = plan.pipeline * plan.interleave;
  const double tokens = static_cast<double>(model.sequence) * plan.micro_batch / plan.context;
  const double cut = plan.cut_messages || plan.sequence_parallel ? plan.tensor : 1;
  StageCosts costs{.forward_layer = forward.Play(),
                   .backward_layer = BackwardLayer(layer, plan),
                   .ends = layers.EndsOf(model, plan),
                   .chunk_layers = model.layers / stages};
  costs.layer_weights = LayerParametersOnDevice(model, plan) * plan.pipeline / model.layers;
  costs.reduce_layer = ReduceSeconds(layers, fabric, plan, costs.layer_weights);
  costs.gather_layer = GatherSeconds(layers, fabric, plan, costs.layer_weights);
  if (plan.pipeline > 1) {
    // Stages lie outermost: a stage is all the devices of tensor, context and data groups.
    const int stride = plan.tensor * plan.context * plan.data;
    costs.send = layers.groups().Send(stride, 2 * tokens * model.hidden / cut);
  }
  return costs;
}

PassCost StageCosts::Forward(bool first, bool last) const {
  PassCost cost = forward_layer * chunk_layers;
  cost.compute += (first ? ends.embedding : 0) + (last ? ends.head_forward : 0);
  return cost;
}

PassCost StageCosts::Backward(bool first, bool last) const {
  PassCost cost = backward_layer * chunk_layers;
  cost.compute += (first ? ends.embedding : 0) + (last ? ends.head_backward : 0);
  return cost;
}

}  // namespace ranklab::sim
