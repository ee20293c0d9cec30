// Seconds of a transformer layer's parts on one device, for one micro-batch, from the shapes of its
// matrix products and the bytes of everything else.
// Source: Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009, and a fixed cost a
// kernel; shapes: Narayanan et al., SC 2021, and Korthikanti et al., arXiv 2205.05198.
#pragma once

#include "sim/cluster/accelerator.h"
#include "sim/step/calibration.h"
#include "sim/step/group_cost.h"
#include "sim/step/plan.h"
#include "sim/step/transformer.h"

namespace ranklab::sim {

// One half of a layer: the attention or the feed-forward part, between two collectives.
struct PartCost {
  double forward = 0;
  double core = 0;     // of `forward`: the attention's core, what selective recomputation repeats
  double inputs = 0;   // backward: gradients of the inputs, and what is not a matrix product
  double weights = 0;  // backward: gradients of the weights
  double collective = 0;  // of the tensor group, after forward and after `inputs`
  double all_to_all = 0;  // of the expert group, before and after the experts, each way
};

struct LayerCost {
  PartCost attention{};
  PartCost feed_forward{};
};

struct EndsCost {
  double embedding = 0;     // forward, first stage; backward the same
  double head_forward = 0;  // logits and loss, last stage
  double head_backward = 0;
};

class LayerModel {
 public:
  LayerModel(const Accelerator& accelerator, const Fabric& fabric, const Calibration& calibration)
      : accelerator_(accelerator),
        fabric_(fabric),
        calibration_(calibration),
        groups_(fabric, calibration) {}

  LayerCost LayerOf(const Transformer& model, const ParallelPlan& plan) const;
  EndsCost EndsOf(const Transformer& model, const ParallelPlan& plan) const;
  const GroupCost& groups() const { return groups_; }

  // 2 m n k FLOPs, `count` of them in one kernel.
  double MatrixProduct(double m, double n, double k, double count = 1) const;
  // `kernels` that read and write `bytes` in all.
  double MemoryBound(double bytes, int kernels) const;

 private:
  PartCost AttentionOf(const Transformer& model, const ParallelPlan& plan) const;
  PartCost FeedForwardOf(const Transformer& model, const ParallelPlan& plan) const;
  double TensorCollective(const Transformer& model, const ParallelPlan& plan) const;

  Accelerator accelerator_;
  Fabric fabric_;
  Calibration calibration_;
  GroupCost groups_;
};

}  // namespace ranklab::sim
