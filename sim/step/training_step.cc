#include "sim/step/training_step.h"

#include <algorithm>
#include <cmath>

#include "core/status.h"
#include "sim/step/memory.h"
#include "sim/step/pipeline_order.h"
#include "sim/step/stage_cost.h"

namespace ranklab::sim {
namespace {

using Id = TaskGraph::Id;

int ComputeStream(int stage) { return 2 * stage; }
int CommunicationStream(int stage) { return 2 * stage + 1; }

// What the compute stream's tasks of a stage consist of.
struct StageSums {
  double compute = 0;
  double tensor = 0;
  double pipeline = 0;
  double update = 0;
};

class StepGraph {
 public:
  StepGraph(const Machine& machine, const Transformer& model, const ParallelPlan& plan)
      : machine_(machine),
        model_(model),
        plan_(plan),
        layers_(machine.accelerator, machine.fabric, machine.calibration),
        costs_(StageCostsOf(layers_, machine.fabric, model, plan)),
        chunks_(plan.pipeline * plan.interleave) {
    const auto passes =
        static_cast<std::size_t>(chunks_) * static_cast<std::size_t>(plan.micro_batches()) * 2;
    begins_.resize(passes, TaskGraph::kNone);
    arrives_.resize(passes, TaskGraph::kNone);
    sums_.resize(static_cast<std::size_t>(plan.pipeline));
  }

  TaskGraph Build() {
    for (int stage = 0; stage < plan_.pipeline; ++stage) {
      reduces_.clear();
      last_compute_ = earlier_compute_ = TaskGraph::kNone;
      for (const Turn& turn : TurnsOf(plan_, stage)) {
        AddPass(stage, turn);
      }
      AddUpdate(stage);
    }
    JoinStages();
    return std::move(graph_);
  }

  std::span<const StageSums> sums() const { return sums_; }

 private:
  std::size_t PassIndex(const Turn& turn, int group) const {
    const std::size_t micro_batches = static_cast<std::size_t>(plan_.micro_batches());
    return (static_cast<std::size_t>(group) * micro_batches +
            static_cast<std::size_t>(turn.micro_batch)) *
               2 +
           (turn.backward ? 1 : 0);
  }

  // Layers that are computed before the next collective of the data-parallel ranks can begin.
  int PieceLayers(const Turn& turn, bool reduces) const {
    if (plan_.zero == 3) {
      return 1;
    }
    if (turn.backward && reduces && plan_.overlap_gradients) {
      const double layer_bytes = costs_.layer_weights * plan_.gradient_bytes;
      return std::clamp(static_cast<int>(std::ceil(plan_.bucket_bytes / layer_bytes)), 1,
                        costs_.chunk_layers);
    }
    return costs_.chunk_layers;
  }

  void AddPass(int stage, const Turn& turn) {
    const int group = turn.chunk * plan_.pipeline + stage;
    const bool first = group == 0;
    const bool last = group == chunks_ - 1;
    const bool reduces = turn.backward && plan_.data * plan_.context > 1 &&
                         (plan_.zero >= 2 || turn.micro_batch == plan_.micro_batches() - 1);
    const PassCost pass =
        turn.backward ? costs_.Backward(first, last) : costs_.Forward(first, last);
    const int piece = PieceLayers(turn, reduces);
    for (int layer = 0; layer < costs_.chunk_layers; layer += piece) {
      const int layers = std::min(piece, costs_.chunk_layers - layer);
      AddPiece(stage, turn, pass * (static_cast<double>(layers) / costs_.chunk_layers), layers,
               reduces);
      if (layer == 0) {
        begins_[PassIndex(turn, group)] = last_compute_;
      }
    }
    const bool sends = turn.backward ? !first : !last;
    arrives_[PassIndex(turn, group)] = last_compute_;
    if (sends && plan_.pipeline > 1) {
      AddSend(stage, turn, group);
    }
  }

  void AddPiece(int stage, const Turn& turn, const PassCost& cost, int layers, bool reduces) {
    StageSums& sums = sums_[static_cast<std::size_t>(stage)];
    sums.compute += cost.compute;
    sums.tensor += cost.tensor;
    Id gathered = TaskGraph::kNone;
    if (plan_.zero == 3) {  // a layer ahead, no further: memory holds two
      gathered =
          AddCommunication(stage, turn, TaskKind::kGather, costs_.gather_layer, earlier_compute_);
    }
    earlier_compute_ = last_compute_;
    last_compute_ = graph_.Add({.stream = ComputeStream(stage),
                                .kind = turn.backward ? TaskKind::kBackward : TaskKind::kForward,
                                .seconds = cost.total(),
                                .micro_batch = turn.micro_batch,
                                .chunk = turn.chunk},
                               {gathered});
    if (reduces && (plan_.overlap_gradients || plan_.zero >= 2)) {
      const double seconds =
          ReduceSeconds(layers_, machine_.fabric, plan_, layers * costs_.layer_weights);
      reduces_.push_back(AddCommunication(stage, turn, TaskKind::kReduce, seconds, last_compute_));
    }
  }

  Id AddCommunication(int stage, const Turn& turn, TaskKind kind, double seconds, Id after) {
    return graph_.Add({.stream = CommunicationStream(stage),
                       .kind = kind,
                       .seconds = seconds,
                       .micro_batch = turn.micro_batch,
                       .chunk = turn.chunk},
                      {after});
  }

  void AddSend(int stage, const Turn& turn, int group) {
    Id& arrives = arrives_[PassIndex(turn, group)];
    if (plan_.overlap_sends) {
      arrives = AddCommunication(stage, turn, TaskKind::kSend, costs_.send, last_compute_);
      return;
    }
    sums_[static_cast<std::size_t>(stage)].pipeline += costs_.send;
    arrives = graph_.Add({.stream = ComputeStream(stage),
                          .kind = TaskKind::kSend,
                          .seconds = costs_.send,
                          .micro_batch = turn.micro_batch,
                          .chunk = turn.chunk},
                         {});
  }

  // What is left to reduce, the optimizer, and the weights that it left in other ranks' shards.
  void AddUpdate(int stage) {
    const double parameters = ParametersOnDevice(model_, plan_, stage);
    const double ranks = plan_.data * plan_.context;
    const bool early = plan_.overlap_gradients || plan_.zero >= 2;
    const double layer_parameters = LayerParametersOnDevice(model_, plan_);
    if (ranks > 1) {
      const double left = early ? parameters - layer_parameters : parameters;
      reduces_.push_back(AddCommunication(
          stage, {}, TaskKind::kReduce,
          left > 0 ? ReduceSeconds(layers_, machine_.fabric, plan_, left) : 0, last_compute_));
    }
    if (model_.tied && plan_.pipeline > 1 && (stage == 0 || stage == plan_.pipeline - 1)) {
      const double bytes = plan_.gradient_bytes * model_.vocabulary / plan_.tensor * model_.hidden;
      reduces_.push_back(AddCommunication(stage, {}, TaskKind::kReduce,
                                          layers_.groups().AllReduce({.ranks = 2}, bytes),
                                          last_compute_));
    }
    const double shard = plan_.zero >= 1 ? parameters / plan_.data : parameters;
    const double seconds = layers_.MemoryBound(shard * machine_.calibration.update_bytes, 1);
    sums_[static_cast<std::size_t>(stage)].update += seconds;
    const Id update = graph_.Add(
        {.stream = ComputeStream(stage), .kind = TaskKind::kUpdate, .seconds = seconds}, {});
    for (const Id reduce : reduces_) {
      graph_.Wait(update, reduce);
    }
    if ((plan_.zero == 1 || plan_.zero == 2) && plan_.data > 1) {
      AddCommunication(stage, {}, TaskKind::kGather,
                       GatherSeconds(layers_, machine_.fabric, plan_, parameters), update);
    }
  }

  // A pass waits for its neighbour's message; the last chunk's backward follows its own forward.
  void JoinStages() {
    for (int group = 0; group < chunks_; ++group) {
      for (int micro_batch = 0; micro_batch < plan_.micro_batches(); ++micro_batch) {
        const Turn forward{.micro_batch = micro_batch};
        const Turn backward{.backward = true, .micro_batch = micro_batch};
        if (group > 0) {
          graph_.Wait(begins_[PassIndex(forward, group)], arrives_[PassIndex(forward, group - 1)]);
        }
        if (group + 1 < chunks_) {
          graph_.Wait(begins_[PassIndex(backward, group)],
                      arrives_[PassIndex(backward, group + 1)]);
        }
      }
    }
  }

  Machine machine_;
  Transformer model_;
  ParallelPlan plan_;
  LayerModel layers_;
  StageCosts costs_;
  int chunks_;
  TaskGraph graph_;
  std::vector<Id> begins_;   // first task of a pass
  std::vector<Id> arrives_;  // what its result comes with
  std::vector<StageSums> sums_;
  std::vector<Id> reduces_;
  Id last_compute_ = TaskGraph::kNone;
  Id earlier_compute_ = TaskGraph::kNone;
};

// Seconds in which the stage's compute stream waits while its own communication runs: gradients and
// weights in flight. What else it waits is for other stages.
double ExposedCommunication(const TaskGraph& graph, const PlayedGraph& played, int stage) {
  const std::span<const Task> tasks = graph.tasks();
  std::vector<std::size_t> communication;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].stream == CommunicationStream(stage) && tasks[i].kind != TaskKind::kSend) {
      communication.push_back(i);
    }
  }
  double exposed = 0;
  double free_at = 0;
  std::size_t next = 0;
  const auto add_gap = [&](double begin, double end) {
    while (next < communication.size() && played.ends[communication[next]] <= begin) {
      ++next;
    }
    for (std::size_t i = next; i < communication.size(); ++i) {
      const double from = std::max(begin, played.begins[communication[i]]);
      const double to = std::min(end, played.ends[communication[i]]);
      exposed += std::max(0.0, to - from);
      if (played.begins[communication[i]] >= end) {
        break;
      }
    }
  };
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].stream == ComputeStream(stage)) {
      add_gap(free_at, played.begins[i]);
      free_at = played.ends[i];
    }
  }
  add_gap(free_at, played.seconds);
  return exposed;
}

StepTime TimeOf(const Machine& machine, const Transformer& model, const ParallelPlan& plan,
                const PlayedStep& step, std::span<const StageSums> sums) {
  StepTime time{.seconds = step.played.seconds};
  for (int stage = 0; stage < plan.pipeline; ++stage) {
    const StageSums& of_stage = sums[static_cast<std::size_t>(stage)];
    time.compute += of_stage.compute / plan.pipeline;
    time.tensor += of_stage.tensor / plan.pipeline;
    time.pipeline += of_stage.pipeline / plan.pipeline;
    time.update += of_stage.update / plan.pipeline;
    time.gradients += ExposedCommunication(step.graph, step.played, stage) / plan.pipeline;
  }
  time.bubble = std::max(0.0, time.seconds - time.compute - time.tensor - time.pipeline -
                                  time.gradients - time.update);
  const double peak = plan.devices() * machine.accelerator.tensor_flops * time.seconds;
  const double batch = plan.global_batch;
  time.mfu = ModelFlops(model, batch) / peak;
  time.hfu = time.mfu;
  if (plan.recompute == Recompute::kFull) {
    time.hfu = FullRecomputeFlops(model, batch) / peak;
  } else if (plan.recompute == Recompute::kSelective || plan.flash_attention) {
    time.hfu = SelectiveRecomputeFlops(model, batch) / peak;
  }
  return time;
}

}  // namespace

absl::StatusOr<Machine> FindMachine(std::string_view accelerator, std::string_view fabric) {
  Machine machine;
  ASSIGN_OR_RETURN(machine.accelerator, FindAccelerator(accelerator));
  ASSIGN_OR_RETURN(machine.fabric, FindFabric(fabric));
  machine.calibration = CalibrationOf(machine.accelerator);
  return machine;
}

absl::StatusOr<PlayedStep> PlayStep(const Machine& machine, const Transformer& model,
                                    const ParallelPlan& plan) {
  RETURN_IF_ERROR(CheckPlan(model, plan));
  StepGraph builder(machine, model, plan);
  PlayedStep step{.graph = builder.Build()};
  ASSIGN_OR_RETURN(step.played, step.graph.Play());
  if (plan.overlap_gradients || plan.zero >= 2) {
    for (int stage = 0; stage < plan.pipeline; ++stage) {
      SlowOverlapped(step.graph, step.played, ComputeStream(stage), CommunicationStream(stage),
                     machine.calibration.overlap_slowdown);
    }
    ASSIGN_OR_RETURN(step.played, step.graph.Play());
  }
  step.time = TimeOf(machine, model, plan, step, builder.sums());
  return step;
}

double StepLowerBound(const Machine& machine, const Transformer& model, const ParallelPlan& plan) {
  const LayerModel layers(machine.accelerator, machine.fabric, machine.calibration);
  const StageCosts costs = StageCostsOf(layers, machine.fabric, model, plan);
  const int p = plan.pipeline;
  const double passes = static_cast<double>(plan.micro_batches()) * plan.interleave;
  const double forward = costs.Forward(false, false).total();
  const double backward = costs.Backward(false, false).total();
  const double send = plan.overlap_sends ? 0 : costs.send;
  // The last stage begins after p-1 passes and is followed by as many; its own are all the rest.
  const double head = costs.ends.head_forward + costs.ends.head_backward;
  const double fill = (p - 1) * (forward + backward + 2 * costs.send);
  double bound = fill + passes * (forward + backward) + plan.micro_batches() * head;
  bound += send * (2.0 * passes - 1 - plan.micro_batches());
  const double parameters = ParametersOnDevice(model, plan, 0);
  const double shard = plan.zero >= 1 ? parameters / plan.data : parameters;
  bound += layers.MemoryBound(shard * machine.calibration.update_bytes, 1);
  if (plan.data * plan.context > 1 && !plan.overlap_gradients && plan.zero < 2) {
    bound += ReduceSeconds(layers, machine.fabric, plan, parameters);
  }
  return bound;
}

}  // namespace ranklab::sim
