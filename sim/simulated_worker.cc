#include "sim/simulated_worker.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "core/check.h"
#include "core/status.h"

namespace ranklab::sim {
namespace {

using experiment::Phase;
using worker::Bucket;
using worker::FaultChange;
using worker::SamplePlan;
using worker::Stretch;

// Extra time counts once, with the phase's first layer.
Nanos SumOf(const std::vector<Nanos>& layers, const Stretch& stretch) {
  Nanos sum = stretch.extra;
  for (const Nanos layer : layers) {
    sum += Stretch{stretch.factor, Nanos::zero()}.Of(layer);
  }
  return sum;
}

template <typename T>
void Append(std::vector<T>& to, std::vector<T> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

SimulatedWorker::SimulatedWorker(const SimulatedWorkerDeps& deps,
                                 const SimulatedWorkerOptions& options)
    : deps_(deps), options_(options), input_(deps.loop, options.input) {
  RANKLAB_CHECK(options.micro_batches >= 1 && options.steps >= 1);
}

void SimulatedWorker::Begin(DoneFn finished) {
  finished_ = std::move(finished);
  deps_.loop.Post([this] { BeginStep(); });
}

void SimulatedWorker::After(Nanos duration, Stage next) {
  deps_.loop.RunAt(deps_.loop.Now() + duration, [this, next] { (this->*next)(); });
}

void SimulatedWorker::BeginStep() {
  record_ = {};
  record_.step = step_;
  record_.begins = deps_.loop.Now();
  record_.loss_sum = std::numeric_limits<double>::quiet_NaN();
  stage_begins_ = record_.begins;
  changes_ = deps_.faults.BeginStep(step_);
  if (std::any_of(changes_.begin(), changes_.end(), worker::IsOfLink)) {
    ReshapeLinks();
  }
  input_.SlowDown(deps_.faults.StretchOf(Phase::kInput).extra);
  After(deps_.faults.PauseOf(), &SimulatedWorker::TakeBatch);
}

// As worker/training_run: what ends gives way to an entry of the same link that is still in force.
void SimulatedWorker::ReshapeLinks() {
  const Endpoint self{Role::kWorker, options_.rank};
  deps_.wire.ResetLinks();
  for (const experiment::ShapeLink& link : deps_.faults.Links()) {
    if (const auto peer = link.WayTo(self)) {
      deps_.wire.ShapeLink(*peer, link.spec);
    }
    if (const auto server = link.WayFrom(self)) {
      deps_.wire.ShapeLinkFrom(*server, link.spec);
    }
  }
}

void SimulatedWorker::TakeBatch() {
  stage_begins_ = deps_.loop.Now();
  if (stage_begins_ > record_.begins) {
    RecordSpan("pause", Track::kHost, record_.begins);
  }
  input_.Take([this] {
    const worker::SamplePosition position = deps_.plan.PositionOf(step_);
    const auto [first, last] =
        SamplePlan::ShareOf(deps_.plan.SizeAt(position), options_.rank, options_.workers);
    record_.input = deps_.loop.Now() - stage_begins_;
    record_.epoch = position.epoch;
    record_.samples = last - first;
    record_.weight = static_cast<double>(record_.samples);
    RecordSpan("input", Track::kInput, stage_begins_);
    deps_.trace.Record(CounterSample{.rank = options_.rank,
                                     .name = "input queue depth",
                                     .step = step_,
                                     .value = static_cast<double>(input_.depth()),
                                     .when = deps_.loop.Now()});
    deps_.exchange.BeginStep(record_.weight);
    micro_batch_ = 0;
    next_bucket_ = 0;
    open_ = 1;  // the end of the step
    exchanged_ = absl::OkStatus();
    Forward();
  });
}

// As worker/train_step: a rank without samples passes through once.
std::int64_t SimulatedWorker::SamplesOfMicroBatch() const {
  const auto [first, last] =
      SamplePlan::ShareOf(record_.samples, micro_batch_, options_.micro_batches);
  return last - first;
}

void SimulatedWorker::Forward() {
  stage_begins_ = deps_.loop.Now();
  const std::int64_t samples = SamplesOfMicroBatch();
  After(samples > 0
            ? SumOf(deps_.modelled.For(samples).forward, deps_.faults.StretchOf(Phase::kForward))
            : Nanos::zero(),
        &SimulatedWorker::Backward);
}

void SimulatedWorker::Backward() {
  const Nanos now = deps_.loop.Now();
  record_.forward += now - stage_begins_;
  RecordSpan("forward", Track::kCompute, stage_begins_);
  stage_begins_ = now;
  const std::int64_t samples = SamplesOfMicroBatch();
  layer_ = static_cast<int>(deps_.modelled.For(samples).backward.size());
  After(samples > 0 ? deps_.faults.StretchOf(Phase::kBackward).extra : Nanos::zero(),
        &SimulatedWorker::BackwardLayer);
}

// The layers above `layer_` are done; so is `layer_` once this stage comes again.
void SimulatedWorker::BackwardLayer() {
  const bool last = record_.samples == 0 || micro_batch_ + 1 == options_.micro_batches;
  if (last && next_bucket_ < deps_.buckets.size() &&
      deps_.buckets[next_bucket_].last_layer == layer_) {
    BeginBucket(deps_.buckets[next_bucket_]);
  }
  if (layer_ > 0) {
    --layer_;
    const std::int64_t samples = SamplesOfMicroBatch();
    const double factor = deps_.faults.StretchOf(Phase::kBackward).factor;
    const Nanos modelled = deps_.modelled.For(samples).backward[static_cast<std::size_t>(layer_)];
    return After(samples > 0 ? Stretch{factor, Nanos::zero()}.Of(modelled) : Nanos::zero(),
                 &SimulatedWorker::BackwardLayer);
  }
  record_.backward += deps_.loop.Now() - stage_begins_;
  RecordSpan("backward", Track::kCompute, stage_begins_);
  if (!last) {
    ++micro_batch_;
    return Forward();
  }
  Meet();
}

void SimulatedWorker::BeginBucket(const Bucket& bucket) {
  ++next_bucket_;
  ++open_;
  if (options_.overlap) {
    deps_.exchange.Begin(step_, bucket,
                         [this](const absl::Status& status) { OnExchanged(status); });
  }
}

void SimulatedWorker::Meet() {
  if (options_.meet_before_exchange) {
    deps_.meet([this] { Exchange(); });
  } else {
    Exchange();
  }
}

void SimulatedWorker::Exchange() {
  stage_begins_ = deps_.loop.Now();
  const auto exchanged = [this](const absl::Status& status) { OnExchanged(status); };
  if (!options_.overlap) {
    for (const Bucket& bucket : deps_.buckets) {
      deps_.exchange.Begin(step_, bucket, exchanged);
    }
  }
  deps_.exchange.EndStep(step_, /*overflow=*/false, exchanged);
}

void SimulatedWorker::OnExchanged(const absl::Status& status) {
  exchanged_.Update(status);
  if (--open_ > 0) {
    return;
  }
  if (!exchanged_.ok()) {
    return Finish(exchanged_);
  }
  const worker::StepExchange ended = deps_.exchange.Ended(step_);
  record_.exposed = deps_.loop.Now() - stage_begins_;
  record_.staleness = ended.staleness;
  RecordSpan("exchange wait", Track::kHost, stage_begins_);
  Update();
}

void SimulatedWorker::Update() {
  stage_begins_ = deps_.loop.Now();
  if (deps_.exchange.outcome() == worker::Outcome::kUpdatedParameters) {
    return EndStep();
  }
  After(deps_.faults.StretchOf(Phase::kOptimizer).Of(deps_.modelled.For(record_.samples).optimizer),
        &SimulatedWorker::EndStep);
}

void SimulatedWorker::EndStep() {
  const Nanos now = deps_.loop.Now();
  if (deps_.exchange.outcome() == worker::Outcome::kSummedGradients) {
    record_.optimizer = now - stage_begins_;
    RecordSpan("optimizer", Track::kCompute, stage_begins_);
  }
  CountBytes();
  worker::TraceBuffer::Taken taken = deps_.trace.Take();
  if (deps_.trace.on()) {
    record_.hidden = worker::HiddenCommunication(taken);
  }
  record_.begins = records_.empty() ? record_.begins : last_ends_;
  record_.step_time = now - record_.begins;
  last_ends_ = now;
  records_.push_back(record_);
  for (const FaultChange& change : changes_) {
    fault_lines_.push_back(
        {.rank = options_.rank,
         .step = step_,
         .asked = change.injection.text,
         .applied = worker::WhatActed(change, options_.rank, records_, /*time_scale=*/1.0),
         .ends = !change.begins});
  }
  Append(traced_.spans, std::move(taken.spans));
  Append(traced_.collectives, std::move(taken.collectives));
  Append(traced_.counters, std::move(taken.counters));
  traced_.dropped += taken.dropped;
  if (deps_.exchange.Finished(step_, options_.steps)) {
    return Leave();
  }
  ++step_;
  deps_.loop.Post([this] { BeginStep(); });
}

void SimulatedWorker::CountBytes() {
  Bytes sent = 0;
  Bytes received = 0;
  for (const Endpoint peer : deps_.peers) {
    const transport::WireCounters counters = deps_.wire.counters(peer);
    sent += counters.body_sent;
    received += counters.body_received;
  }
  record_.bytes_sent = sent - std::exchange(sent_, sent);
  record_.bytes_received = received - std::exchange(received_, received);
}

void SimulatedWorker::Leave() {
  deps_.exchange.Leave([this](const absl::Status& status) { Finish(status); });
}

void SimulatedWorker::Finish(const absl::Status& status) {
  DoneFn finished = std::exchange(finished_, nullptr);
  finished(Annotate(status, absl::StrFormat("worker %d, step %d", options_.rank, step_)));
}

std::string SimulatedWorker::Where() const {
  return absl::StrFormat("worker %d in step %d, waiting for %s", options_.rank, step_,
                         deps_.exchange.WaitingFor());
}

void SimulatedWorker::RecordSpan(const char* name, Track track, Nanos begins) {
  deps_.trace.Record(Span{.rank = options_.rank,
                          .track = track,
                          .name = name,
                          .step = step_,
                          .begins = begins,
                          .ends = deps_.loop.Now()});
}

}  // namespace ranklab::sim
