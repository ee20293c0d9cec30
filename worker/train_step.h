// One training step: start reading the product here.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <absl/functional/any_invocable.h>
#include <absl/status/statusor.h>

#include "compute/loss_scale.h"
#include "compute/optimizer.h"
#include "core/trace.h"
#include "experiment/run_record.h"
#include "worker/buckets.h"
#include "worker/gradient_exchange.h"
#include "worker/input_queue.h"
#include "worker/model.h"
#include "worker/modelled_step.h"
#include "worker/rank_faults.h"
#include "worker/step_clock.h"

namespace ranklab::worker {

// What a step works with; all must outlive the TrainStep.
struct TrainStepDeps {
  Model& model;
  GradientExchange& exchange;
  compute::Optimizer& optimizer;  // unused when a server applies the update
  InputQueue& input;
  ModelledStep& modelled;
  const RankFaults& faults;
  StepClock& clock;
  TraceSink& trace;
  absl::AnyInvocable<void(const char* phase)>& progress;  // for heartbeats: what it is doing now
  absl::AnyInvocable<absl::Status(Step)>& meet;  // waits for all workers, where the lab wants that
};

struct TrainStepOptions {
  Rank rank = 0;
  int micro_batches = 1;
  double clip_norm = 0;     // of the gradients before the update; 0: not clipped
  bool scale_loss = false;  // dynamically, as float16 wants it
  BucketOptions buckets;
  Nanos input_timeout = std::chrono::seconds(60);
};

// For the training thread. Step k: batch, forward, loss, backward with every bucket begun as soon
// as its last gradient is there, exchange, update. An overflow on any rank skips the update on all,
// and with it the optimizer's and the schedule's count.
class TrainStep {
 public:
  TrainStep(const TrainStepDeps& deps, const TrainStepOptions& options);

  // Everything of the record but step_time and bytes, which the run around it knows.
  // Errors: the exchange's and the device's own; FailedPrecondition, the loss scale fell below 1.
  absl::StatusOr<experiment::StepRecord> Run(Step step);

  std::span<const Bucket> buckets() const { return buckets_; }

 private:
  absl::StatusOr<RankBatch> TakeBatch(experiment::StepRecord& record);
  absl::Status ForwardAndBackward(const Batch& batch, bool last, experiment::StepRecord& record);
  absl::Status Exchange(Step step, experiment::StepRecord& record);
  absl::StatusOr<StepExchange> FinishExchange(Step step);
  // Have the gradients an Inf or NaN? Never asked where the loss is not scaled: there it is the
  // model's, and is not hidden by skipping a step.
  absl::StatusOr<bool> Overflowed() const;
  absl::Status Update(Step step, const StepExchange& exchanged, experiment::StepRecord& record);
  absl::Status FinishPhase() const;
  void RecordSpan(const char* name, Track track, Step step, Nanos begins, Nanos ends);

  TrainStepDeps deps_;
  TrainStepOptions options_;
  std::vector<Bucket> buckets_;
  compute::LossScale loss_scale_;
};

}  // namespace ranklab::worker
