// The optimizer that a lab asks for.
#pragma once

#include <string>

#include "compute/optimizer.h"
#include "experiment/lab_spec.h"

namespace ranklab::worker {

// For whoever applies the update. An asynchronous server applies every worker's step by itself: as
// many updates as there are workers where there was one, so that the rate is divided by their
// number and the schedule moves once in so many. A rate that is scaled up with the batch ramps up
// from what it is scaled from (Goyal et al., 2017), any other from 0. Requires: a resolved number
// of workers.
compute::OptimizerSpec OptimizerOf(const experiment::LabSpec& spec);

// What the worker does to the parameters at the end of a step, for its cost.
struct WorkerUpdate {
  std::string optimizer{};  // of compute/optimizer.h; "" behind a parameter server
  bool clips = false;       // reads the gradients once more before, for their norm
};
WorkerUpdate WorkerUpdateOf(const experiment::LabSpec& spec);

}  // namespace ranklab::worker
