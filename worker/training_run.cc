#include "worker/training_run.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <unistd.h>

#include "compute/device.h"
#include "compute/make_device.h"
#include "coordinator/barrier.h"
#include "core/check.h"
#include "core/overloaded.h"
#include "core/seconds.h"
#include "core/status.h"
#include "experiment/survival.h"
#include "worker/evaluate.h"
#include "worker/exchange_nccl.h"
#include "worker/gpu_queues.h"
#include "worker/lab_optimizer.h"
#include "worker/matrix_rate.h"
#include "worker/precision.h"

namespace ranklab::worker {
namespace {

using experiment::Phase;
using experiment::StepRecord;

// What a worker that is to be killed leaves its log line to get away.
constexpr Nanos kLogLeaves = std::chrono::milliseconds(200);

template <typename T>
T Median(std::vector<T> values) {
  RANKLAB_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

TrainingRun::TrainingRun(EventLoop& loop, Network& network, const Dataset& data, RankFaults& faults,
                         const StatusLatch& aborted, RunObserver& observer,
                         const TrainingRunOptions& options)
    : loop_(loop),
      network_(network),
      data_(data),
      faults_(faults),
      aborted_(aborted),
      observer_(observer),
      options_(options),
      trace_(options.spec.train.trace),
      patience_(loop, aborted),
      clock_(loop, {.modelled = !options.spec.compute.native(), .time_scale = options.time_scale},
             aborted),
      progress_([this](const char* phase) { SetPhase(phase); }),
      meet_([this](Step step) {
        return options_.spec.exchange.barrier
                   ? observer_.Barrier(absl::StrFormat("exchange of step %d", step))
                   : absl::OkStatus();
      }) {}

TrainingRun::~TrainingRun() {
  // The exchange waits for what it has begun on the loop; an aborted transport ends all of it.
  network_.Abort(Aborted("the run is over"));
  train_step_.reset();
  exchange_.reset();
}

absl::Status TrainingRun::Prepare() { return Explain(MakeParts()); }

absl::StatusOr<TrainingResult> TrainingRun::Run() {
  absl::StatusOr<TrainingResult> result = Train();
  return result.ok() ? std::move(result) : Explain(result.status());
}

void TrainingRun::SetPhase(const char* phase) {
  phase_ = phase;
  observer_.OnPhase(step_, phase);
}

absl::Status TrainingRun::Explain(const absl::Status& status) const {
  if (!absl::IsResourceExhausted(status)) {
    return status;
  }
  if (step_ == 0) {
    return Annotate(status, "phase load, before any step");
  }
  // All else was allocated at load (Model, Optimizer).
  return Annotate(status, absl::StrFormat("step %d, phase %s, %s", step_, phase_,
                                          phase_ == "optimizer" ? "the first optimizer step"
                                                                : "the longest batch so far"));
}

absl::Status TrainingRun::MakeParts() {
  const experiment::LabSpec& spec = options_.spec;
  const int workers = spec.cluster.workers;
  const std::int64_t share = spec.BatchOf(0);
  const std::int64_t micro = (share + spec.train.accumulate - 1) / spec.train.accumulate;
  ASSIGN_OR_RETURN(device_,
                   compute::MakeDevice(spec.cluster.device, {.threads = spec.compute.threads,
                                                             .place = options_.rank,
                                                             .cap = spec.cluster.memory_cap}));
  queues_ = QueuesOf(*device_);
  ASSIGN_OR_RETURN(model_, MakeModel(spec, *device_, micro, data_.inputs, data_.classes));
  RETURN_IF_ERROR(model_->Initialize(spec.seed));
  ASSIGN_OR_RETURN(optimizer_, compute::MakeOptimizer(OptimizerOf(spec), *device_));
  ASSIGN_OR_RETURN(DeviceStep modelled, DeviceStep::Make(spec, *model_));
  modelled_ = std::make_unique<DeviceStep>(std::move(modelled));
  plan_ = std::make_unique<SamplePlan>(spec.seed, data_.train.samples(), spec.GlobalBatch());
  input_ = std::make_unique<InputQueue>(data_, *plan_,
                                        InputQueue::Options{.rank = options_.rank,
                                                            .ranks = workers,
                                                            .depth = spec.data.prefetch,
                                                            .loaders = spec.data.loaders});
  ASSIGN_OR_RETURN(
      exchange_,
      MakeExchange(
          {loop_, network_.messenger(), trace_, reducer_, *model_},
          {.queues = queues_.get(),
           .patience = patience_,
           .share = [this](const std::string& mine) { return observer_.Exchange("nccl", mine); }},
          {.spec = spec.exchange,
           .wire = WireOf(spec),
           .generation = options_.generation,
           .rank = options_.rank,
           .workers = workers,
           .servers = spec.cluster.servers,
           .shared_gpu = spec.cluster.shared_gpu,
           .timeout = options_.exchange_timeout,
           .replicated = experiment::Replicates(spec)}));
  train_step_ = std::make_unique<TrainStep>(
      TrainStepDeps{*model_, *exchange_, *optimizer_, *input_, *modelled_, faults_, clock_, trace_,
                    progress_, meet_},
      TrainStepOptions{.rank = options_.rank,
                       .micro_batches = spec.train.accumulate,
                       .clip_norm = spec.train.clip_norm,
                       .scale_loss = ScalesLoss(spec),
                       .buckets = BucketsOf(spec)});
  return absl::OkStatus();
}

absl::StatusOr<TrainingResult> TrainingRun::Train() {
  RANKLAB_CHECK(train_step_ != nullptr, "Prepare comes first");
  TrainingResult result;
  const Step steps = options_.spec.train.steps;
  for (step_ = 1;; ++step_) {
    ASSIGN_OR_RETURN(const StepRecord record, OneStep(step_));
    result.samples += record.samples;
    result.steps = step_;
    if (exchange_->Finished(step_, steps)) {
      break;
    }
  }
  // Nobody waits for this worker's next step any more; then all read the same final parameters.
  observer_.OnPhase(step_, "leaving");
  RETURN_IF_ERROR(exchange_->Leave());
  RETURN_IF_ERROR(observer_.Barrier(coordinator::kTrainedBarrier));
  if (options_.calibrate) {
    AddCalibration(result);
  }
  RETURN_IF_ERROR(exchange_->FetchFinal());
  RETURN_IF_ERROR(observer_.Barrier(coordinator::kFetchedBarrier));
  return options_.calibrate ? result : Evaluate(std::move(result));
}

absl::StatusOr<StepRecord> TrainingRun::OneStep(Step step) {
  if (aborted_.is_set()) {
    return Aborted("the generation was aborted in step %d", step);
  }
  const std::vector<FaultChange> changes = faults_.BeginStep(step);
  ApplyFaults(changes, step);
  ASSIGN_OR_RETURN(StepRecord record, train_step_->Run(step));
  const Network::Traffic traffic = network_.TrafficSoFar();
  record.bytes_sent = traffic.sent - traffic_.sent;
  record.bytes_received = traffic.received - traffic_.received;
  traffic_ = traffic;
  // A step lasts until the next one begins: what is done between them is not hidden.
  const Nanos ends = loop_.Now();
  record.begins = records_.empty() ? record.begins : last_ends_;
  record.step_time = ends - record.begins;
  last_ends_ = ends;
  TraceBuffer::Taken trace = trace_.Take();
  if (trace_.on()) {
    record.hidden = HiddenCommunication(trace);
  }
  records_.push_back(record);
  for (const FaultChange& change : changes) {
    observer_.OnFault(change, step,
                      WhatActed(change, options_.rank, records_, options_.time_scale));
  }
  observer_.OnStep(record, std::move(trace));
  return record;
}

void TrainingRun::ApplyFaults(const std::vector<FaultChange>& changes, Step step) {
  if (std::any_of(changes.begin(), changes.end(), IsOfLink)) {
    ReshapeLinks(step);
  }
  input_->SlowDown(Nanos(static_cast<std::int64_t>(
      static_cast<double>(faults_.StretchOf(Phase::kInput).extra.count()) * options_.time_scale)));
  if (faults_.Killed()) {
    EndProcess(changes, step);
  }
}

// From a clean start: what ends gives way to an entry of the same link that is still in force.
void TrainingRun::ReshapeLinks(Step step) {
  network_.ResetLinks();
  for (const experiment::ShapeLink& link : faults_.Links()) {
    network_.ShapeLink(link);
  }
  observer_.OnPhase(step, "links reshaped");
}

void TrainingRun::EndProcess(const std::vector<FaultChange>& changes, Step step) {
  for (const FaultChange& change : changes) {
    if (IsKill(change)) {
      observer_.OnFault(change, step, "SIGKILL");
    }
  }
  aborted_.SleepUnlessSet(kLogLeaves);
  // As the kernel's out-of-memory killer would: no goodbye to the peers.
  kill(getpid(), SIGKILL);
}

absl::StatusOr<TrainingResult> TrainingRun::Evaluate(TrainingResult result) {
  SetPhase("evaluating");
  ASSIGN_OR_RETURN(result.param_hash, ParamHash(*model_));
  ASSIGN_OR_RETURN(const Evaluation train, worker::Evaluate(*model_, data_.train));
  ASSIGN_OR_RETURN(const Evaluation test, worker::Evaluate(*model_, data_.test));
  result.final_loss = train.loss;
  result.test_loss = test.loss;
  result.accuracy = test.accuracy;
  result.passes = static_cast<double>(result.samples) / static_cast<double>(data_.train.samples());
  result.memory = device_->memory();
  result.predicted_memory = PredictMemory(options_.spec, *model_);
  // A GPU's matrix rate is measured by `ranklab device`.
  if (options_.spec.compute.native() && device_->name() == "cpu") {
    // Counts its memory for itself.
    compute::CpuDevice probe({.threads = options_.spec.compute.threads});
    ASSIGN_OR_RETURN(result.matrix_flops,
                     MeasureMatrixRate(probe, StorageOf(options_.spec), loop_));
  }
  return result;
}

// All ranks compute and exchange at once: what each can have beside the others. The first step pays
// for what is made on first use.
void TrainingRun::AddCalibration(TrainingResult& result) const {
  std::vector<Nanos> computes;
  std::vector<Nanos> exchanges;
  for (std::size_t i = records_.size() > 1 ? 1 : 0; i < records_.size(); ++i) {
    const StepRecord& record = records_[i];
    computes.push_back(record.forward + record.backward + record.optimizer);
    exchanges.push_back(record.exposed);
  }
  result.native.compute = Median(std::move(computes));
  result.native.exchange = Median(std::move(exchanges));
}

}  // namespace ranklab::worker
