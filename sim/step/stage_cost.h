// Seconds of one pass of a pipeline stage's chunk, from its layers' parts played on two streams.
#pragma once

#include "sim/step/layer_cost.h"

namespace ranklab::sim {

struct PassCost {
  double compute = 0;
  double tensor = 0;  // exposed: what the collectives of a layer add
  double total() const { return compute + tensor; }
  PassCost operator*(double n) const { return {.compute = compute * n, .tensor = tensor * n}; }
};

struct StageCosts {
  PassCost forward_layer{};
  PassCost backward_layer{};  // with what is recomputed
  EndsCost ends{};
  int chunk_layers = 0;
  double send = 0;           // a micro-batch to the next stage, or back
  double layer_weights = 0;  // parameters of a layer on a device
  double reduce_layer = 0;   // gradients of a layer, alone
  double gather_layer = 0;   // weights of a layer, alone; ZeRO-3

  PassCost Forward(bool first, bool last) const;  // of a chunk, at the ends of the model
  PassCost Backward(bool first, bool last) const;
};

StageCosts StageCostsOf(const LayerModel& layers, const Fabric& fabric, const Transformer& model,
                        const ParallelPlan& plan);

// Seconds to reduce gradients of `parameters` over the data-parallel ranks, or to gather weights.
double ReduceSeconds(const LayerModel& layers, const Fabric& fabric, const ParallelPlan& plan,
                     double parameters);
double GatherSeconds(const LayerModel& layers, const Fabric& fabric, const ParallelPlan& plan,
                     double parameters);

}  // namespace ranklab::sim
