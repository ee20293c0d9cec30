// In which order a stage works on micro-batches: GPipe, 1F1B, interleaved 1F1B.
// Source: Narayanan et al., SC 2021, section 2.2, and Megatron-LM's schedules.
#pragma once

#include <vector>

#include "sim/step/plan.h"

namespace ranklab::sim {

struct Turn {
  bool backward = false;
  int micro_batch = 0;
  int chunk = 0;  // of the stage's `interleave` chunks; chunk c of stage i is layer group c p + i
};

std::vector<Turn> TurnsOf(const ParallelPlan& plan, int stage);

}  // namespace ranklab::sim
