// What a step should take: the closed forms applied to a cell. The table's `predicted`.
#pragma once

#include <vector>

#include <absl/status/statusor.h>

#include "experiment/lab_spec.h"
#include "fabric/cost.h"
#include "worker/buckets.h"
#include "worker/model.h"

namespace ranklab::worker {

// All in modelled seconds.
struct StepPrediction {
  double compute = 0;  // forward, backward, optimizer where it is on the worker
  double exposed = 0;  // communication that the step waits for
  double step = 0;
};

// Of a whole step on the modelled cluster: the layers' times, then the bucket recursion with the
// exchange's closed form per bucket (model M2). For a parameter server the pushes are played bucket
// by bucket and the pull follows the last one, in the other direction of the same ports.
// Requires: a compute model and a modelled fabric, or no exchange; a synchronous exchange without
// injections (an asynchronous step has no closed form), by an algorithm that has one.
// Errors: Unimplemented, when one of these does not hold; as MakeModel.
absl::StatusOr<StepPrediction> PredictStep(const experiment::LabSpec& spec, Model& model);

// The same from the spec alone: makes the model for its shapes.
absl::StatusOr<StepPrediction> PredictStep(const experiment::LabSpec& spec);

// The same where there is no closed form for the algorithm: the ring's, as a yardstick for
// time-outs and time scales. Errors: as PredictStep, but for the algorithm.
absl::StatusOr<StepPrediction> EstimateStep(const experiment::LabSpec& spec);

// The exposed part alone: without overlap it needs no compute model.
absl::StatusOr<double> PredictExposed(const experiment::LabSpec& spec);

// Of the time of all buckets' exchanges, one after the other, the part that their messages' latency
// makes: what a network of more bandwidth would not take away. In [0, 1].
// Errors: as PredictExposed without overlap.
absl::StatusOr<double> PredictLatencyShare(const experiment::LabSpec& spec);

// Of the buckets' exchanges, given when each is ready.
// Errors: Unimplemented, the algorithm has no closed form for this number of workers.
absl::StatusOr<fabric::Overlap> PredictExchange(const experiment::LabSpec& spec,
                                                const fabric::LinkSpec& port,
                                                std::span<const Bucket> buckets,
                                                std::span<const Nanos> ready);

}  // namespace ranklab::worker
