// Which plan trains fastest on so many devices: all legal plans that fit, the best ten of them.
#pragma once

#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "sim/step/memory.h"
#include "sim/step/training_step.h"

namespace ranklab::sim {

struct PlanRequest {
  Machine machine{};
  Transformer model{};
  int devices = 1;
  int global_batch = 1;
  bool flash_attention = true;
  // Plays only plans whose lower bound is below the tenth best time so far; the ten are the same.
  bool prune = true;
};

struct Candidate {
  ParallelPlan plan{};
  StepTime time{};
  MemoryUse memory{};
};

struct PlanRanking {
  std::vector<Candidate> best{};  // at most ten, fastest first
  int legal = 0;
  int too_large = 0;            // do not fit into a device's memory
  int played = 0;               // the others' lower bound was above the tenth
  std::string smallest_misfit{};  // if none fits: the plan that needs least, and what would fit
};

// Every legal plan of the request: tensor degrees up to two nodes, all pipeline degrees, 1F1B and
// interleaved, micro-batches of powers of two up to 16, ZeRO 0 to 3, every recomputation. Taken as
// given: sequence parallelism with tensor parallelism, gradients reduced during the backward pass,
// one part of the sequence, experts (if any) over as many data-parallel ranks as divide them.
std::vector<ParallelPlan> LegalPlans(const PlanRequest& request);

// Errors: InvalidArgument, no legal plan: the batch or the devices do not divide.
absl::StatusOr<PlanRanking> SearchPlans(const PlanRequest& request);

// Why these: sentences with figures, each from playing a neighbour of the best plan.
// Requires: the ranking has a best plan.
std::vector<std::string> ExplainBest(const PlanRequest& request, const PlanRanking& ranking);

// "3.2 % slower: 0.41 s more bubble": what of the time grew most. Requires: slower is slower.
std::string WhyItLost(const Candidate& best, const Candidate& slower);

}  // namespace ranklab::sim
