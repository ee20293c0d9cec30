// One training step of a transformer on a cluster: a graph of compute and communication, one device
// standing for all that do the same (one a pipeline stage), played on streams.
// Sources: Narayanan et al., SC 2021 (pipelines); Huang et al., "GPipe", NeurIPS 2019; Rajbhandari
// et al., "ZeRO", SC 2020; Zhao et al., "PyTorch FSDP", VLDB 16(12), 2023.
#pragma once

#include <vector>

#include <absl/status/statusor.h>

#include "sim/cluster/accelerator.h"
#include "sim/step/calibration.h"
#include "sim/step/plan.h"
#include "sim/step/task_graph.h"
#include "sim/step/transformer.h"

namespace ranklab::sim {

struct Machine {
  Accelerator accelerator{};
  Fabric fabric{};
  Calibration calibration{};
};

// Errors: InvalidArgument, an unknown name.
absl::StatusOr<Machine> FindMachine(std::string_view accelerator, std::string_view fabric);

// Where the stages' time goes, seconds, the mean over the stages; they sum up to `seconds`.
struct StepTime {
  double seconds = 0;
  double compute = 0;
  double tensor = 0;     // exposed: collectives of tensor, context and expert groups
  double pipeline = 0;   // sending to the next stage
  double gradients = 0;  // exposed: reducing gradients, gathering weights
  double update = 0;     // the optimizer
  double bubble = 0;     // waiting for other stages
  double mfu = 0;        // model FLOPs over peak
  double hfu = 0;        // with what is recomputed
};

struct PlayedStep {
  StepTime time{};
  TaskGraph graph{};  // stream 2i: compute of stage i, 2i + 1: its communication
  PlayedGraph played{};
};

// Errors: InvalidArgument, what CheckPlan refuses.
absl::StatusOr<PlayedStep> PlayStep(const Machine& machine, const Transformer& model,
                                    const ParallelPlan& plan);

// Seconds that no order of the same work can beat: all of a stage's compute and collectives, the
// ends of the pipeline filled, the exposed update. Source: the bubble (p-1)/v of Narayanan et al.
double StepLowerBound(const Machine& machine, const Transformer& model, const ParallelPlan& plan);

}  // namespace ranklab::sim
