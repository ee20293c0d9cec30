#include "worker/train_step.h"

#include <cmath>
#include <limits>
#include <utility>

#include "core/check.h"
#include "core/status.h"
#include "worker/batch.h"

namespace ranklab::worker {
namespace {

using experiment::Phase;
using experiment::StepRecord;

}  // namespace

TrainStep::TrainStep(const TrainStepDeps& deps, const TrainStepOptions& options)
    : deps_(deps),
      options_(options),
      buckets_(CutBuckets(deps.model, options.buckets)),
      loss_scale_(options.scale_loss) {
  RANKLAB_CHECK(options.micro_batches >= 1);
}

absl::StatusOr<StepRecord> TrainStep::Run(Step step) {
  StepRecord record;
  record.step = step;
  record.begins = deps_.clock.Now();
  deps_.clock.BeginStep();
  if (const Nanos pause = deps_.faults.PauseOf(); pause > Nanos::zero()) {
    deps_.clock.Pause(pause);
    RecordSpan("pause", Track::kHost, step, record.begins, deps_.clock.Now());
  }

  ASSIGN_OR_RETURN(RankBatch batch, TakeBatch(record));
  RANKLAB_CHECK(batch.step == step, "the loader is at step %d, the worker at %d", batch.step, step);

  // A rank without samples in a short batch still takes part in the exchange, with weight 0.
  RETURN_IF_ERROR(deps_.model.ZeroGradients());
  record.loss_scale = loss_scale_.value();
  // Scaled gradients are worth as much more: whoever divides by the weights takes the scale out.
  deps_.exchange.BeginStep(step, record.weight * record.loss_scale);
  const int micro_batches = batch.samples() == 0 ? 1 : options_.micro_batches;
  for (int micro = 0; micro < micro_batches; ++micro) {
    const auto [first, last] = SamplePlan::ShareOf(batch.samples(), micro, micro_batches);
    const Batch part = batch.samples() == 0 ? Batch{} : BatchOf(batch.rows, first, last);
    RETURN_IF_ERROR(ForwardAndBackward(part, micro + 1 == micro_batches, record));
  }

  RETURN_IF_ERROR(Exchange(step, record));
  record.lateness = deps_.clock.lateness();
  return record;
}

absl::StatusOr<RankBatch> TrainStep::TakeBatch(StepRecord& record) {
  deps_.progress("input");
  const Nanos begins = deps_.clock.Now();
  const bool starved = deps_.input.depth() == 0;
  ASSIGN_OR_RETURN(RankBatch batch, deps_.input.Next(options_.input_timeout));
  if (starved) {
    deps_.clock.Resume();
  }
  record.input = deps_.clock.Now() - begins;
  record.epoch = batch.position.epoch;
  record.samples = batch.samples();
  record.weight = static_cast<double>(batch.rows.CountTargets());
  deps_.trace.Record(CounterSample{.rank = options_.rank,
                                   .name = "input queue depth",
                                   .step = record.step,
                                   .value = static_cast<double>(deps_.input.depth()),
                                   .when = deps_.clock.Now()});
  RecordSpan("input", Track::kInput, record.step, begins, deps_.clock.Now());
  return batch;
}

absl::Status TrainStep::ForwardAndBackward(const Batch& batch, bool last, StepRecord& record) {
  const std::int64_t samples = batch.inputs.data == nullptr ? 0 : batch.inputs.shape[0];
  const LayerTimes& modelled = deps_.modelled.For(samples);
  deps_.progress("forward");
  const Nanos forward_begins = deps_.clock.Now();
  const Stretch slow_forward = deps_.faults.StretchOf(Phase::kForward);
  for (int layer = 0; samples > 0 && layer < deps_.model.layer_count(); ++layer) {
    RETURN_IF_ERROR(deps_.model.ForwardLayer(layer, batch));
    deps_.clock.Hold(modelled.forward[static_cast<std::size_t>(layer)],
                     layer == 0 ? slow_forward : Stretch{slow_forward.factor, Nanos::zero()});
  }
  RETURN_IF_ERROR(FinishPhase());
  const Nanos backward_begins = deps_.clock.Now();
  record.forward += backward_begins - forward_begins;
  RecordSpan("forward", Track::kCompute, record.step, forward_begins, backward_begins);

  if (samples > 0) {
    const float scale = deps_.faults.GradientsAreNaN() ? std::numeric_limits<float>::quiet_NaN()
                                                       : static_cast<float>(record.loss_scale);
    ASSIGN_OR_RETURN(const compute::LossSum loss, deps_.model.Loss(batch, scale));
    record.loss_sum += loss.loss;
  }
  deps_.progress("backward");
  const Stretch slow_backward = deps_.faults.StretchOf(Phase::kBackward);
  std::size_t next_bucket = 0;
  for (int layer = deps_.model.layer_count() - 1; layer >= 0; --layer) {
    if (samples > 0) {
      RETURN_IF_ERROR(deps_.model.BackwardLayer(layer, batch));
      const bool first = layer == deps_.model.layer_count() - 1;
      deps_.clock.Hold(modelled.backward[static_cast<std::size_t>(layer)],
                       first ? slow_backward : Stretch{slow_backward.factor, Nanos::zero()});
    }
    if (last && next_bucket < buckets_.size() && buckets_[next_bucket].last_layer == layer) {
      deps_.exchange.Begin(record.step, buckets_[next_bucket]);
      ++next_bucket;
    }
  }
  RETURN_IF_ERROR(FinishPhase());
  record.backward += deps_.clock.Now() - backward_begins;
  RecordSpan("backward", Track::kCompute, record.step, backward_begins, deps_.clock.Now());
  return absl::OkStatus();
}

absl::Status TrainStep::Exchange(Step step, StepRecord& record) {
  RETURN_IF_ERROR(deps_.meet(step));
  deps_.progress("exchange");
  const Nanos begins = deps_.clock.Now();
  ASSIGN_OR_RETURN(const StepExchange exchanged, FinishExchange(step));
  deps_.clock.Resume();
  record.skipped = exchanged.overflow;
  loss_scale_.Update(exchanged.overflow);
  if (loss_scale_.value() < 1.0) {
    return FailedPrecondition(
        "the loss scale fell below 1 in step %d: gradients are not finite whatever it is, so the "
        "model has diverged",
        step);
  }
  record.exposed = exchanged.exposed;
  record.staleness = exchanged.staleness;
  RecordSpan("exchange wait", Track::kHost, step, begins, deps_.clock.Now());
  return Update(step, exchanged, record);
}

// A server is told before it applies the step; where gradients are summed, an Inf or NaN of any
// rank is in everyone's sum, so that all find the same.
absl::StatusOr<StepExchange> TrainStep::FinishExchange(Step step) {
  const bool on_server = deps_.exchange.outcome() == Outcome::kUpdatedParameters;
  bool overflow = false;
  if (on_server) {
    ASSIGN_OR_RETURN(overflow, Overflowed());
  }
  ASSIGN_OR_RETURN(StepExchange exchanged, deps_.exchange.FinishStep(step, overflow));
  if (!on_server) {
    ASSIGN_OR_RETURN(exchanged.overflow, Overflowed());
  }
  return exchanged;
}

absl::StatusOr<bool> TrainStep::Overflowed() const {
  if (!loss_scale_.dynamic()) {
    return false;
  }
  // Squares of finite float32 cannot overflow in double precision.
  ASSIGN_OR_RETURN(const double squares, SumOfSquares(deps_.model.gradients()));
  return !std::isfinite(squares);
}

absl::Status TrainStep::Update(Step step, const StepExchange& exchanged, StepRecord& record) {
  if (deps_.exchange.outcome() == Outcome::kUpdatedParameters || exchanged.overflow) {
    return absl::OkStatus();
  }
  RANKLAB_CHECK(exchanged.weight_sum > 0.0, "step %d has no targets on any rank", step);
  deps_.progress("optimizer");
  const Nanos begins = deps_.clock.Now();
  double scale = 1.0 / exchanged.weight_sum;
  if (options_.clip_norm > 0) {
    ASSIGN_OR_RETURN(const double factor,
                     compute::ClipFactor(deps_.model.gradients(), scale, options_.clip_norm));
    scale *= factor;
  }
  RETURN_IF_ERROR(deps_.optimizer.Apply(deps_.model.parameters(), deps_.model.gradients(), scale));
  deps_.clock.Hold(deps_.modelled.For(record.samples).optimizer,
                   deps_.faults.StretchOf(Phase::kOptimizer));
  RETURN_IF_ERROR(FinishPhase());
  record.optimizer = deps_.clock.Now() - begins;
  RecordSpan("optimizer", Track::kCompute, step, begins, deps_.clock.Now());
  return absl::OkStatus();
}

// A device's work is only queued by the calls before; a phase ends when it is done.
absl::Status TrainStep::FinishPhase() const {
  compute::Device* const device = deps_.model.parameters().device;
  return device == nullptr ? absl::OkStatus() : device->Synchronize();
}

void TrainStep::RecordSpan(const char* name, Track track, Step step, Nanos begins, Nanos ends) {
  deps_.trace.Record(Span{.rank = options_.rank,
                          .track = track,
                          .name = name,
                          .step = step,
                          .begins = begins,
                          .ends = ends});
}

}  // namespace ranklab::worker
