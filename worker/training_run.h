// One repeat of one cell on one worker, from loading to the final evaluation: the story that the
// training thread runs from top to bottom.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <absl/functional/any_invocable.h>
#include <absl/status/statusor.h>

#include "collectives/cpu_reducer.h"
#include "collectives/nccl/patience.h"
#include "collectives/nccl/queues.h"
#include "compute/tensor.h"
#include "core/event_loop.h"
#include "core/status_latch.h"
#include "experiment/lab_spec.h"
#include "experiment/run_record.h"
#include "worker/dataset.h"
#include "worker/exchange.h"
#include "worker/input_queue.h"
#include "worker/memory_prediction.h"
#include "worker/modelled_step.h"
#include "worker/network.h"
#include "worker/rank_faults.h"
#include "worker/sample_plan.h"
#include "worker/step_clock.h"
#include "worker/trace_buffer.h"
#include "worker/train_step.h"

namespace ranklab::worker {

struct TrainingRunOptions {
  experiment::LabSpec spec;  // of the cell; calibration replaces fabric and compute by native
  Rank rank = 0;
  std::uint32_t generation = 0;
  double time_scale = 1.0;
  bool calibrate = false;
  Nanos exchange_timeout{};  // of one step's exchange, wall time
};

// What the run tells the outside; on the training thread.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void OnPhase(Step step, const char* phase) = 0;
  virtual void OnStep(const experiment::StepRecord& record, TraceBuffer::Taken trace) = 0;
  virtual void OnFault(const FaultChange& change, Step step, const std::string& applied) = 0;
  // Returns when all workers of the generation are there. Errors: DeadlineExceeded; Aborted.
  virtual absl::Status Barrier(const std::string& name) = 0;
  // A barrier to which each worker brings a token of at most 1 KiB; returns all, [rank].
  virtual absl::StatusOr<std::vector<std::string>> Exchange(const std::string& name,
                                                            const std::string& token) = 0;
};

struct TrainingResult {
  std::string param_hash;
  double final_loss = 0;  // mean over the training split
  double test_loss = 0;   // mean over the test split
  double accuracy = 0;    // on the test split
  std::int64_t samples = 0;
  double passes = 0;  // over the training split, by this worker alone
  Step steps = 0;
  std::vector<compute::MemoryCount> memory;  // every kind
  MemoryPrediction predicted_memory;
  double matrix_flops = 0;  // a second, see matrix_rate.h; 0 where compute is modelled
  // Of a calibration: medians of native steps, all workers at once, nothing overlapped.
  struct Native {
    Nanos compute{};   // forward, backward, optimizer
    Nanos exchange{};  // from all workers' entry to this one's end
  } native;
};

class TrainingRun {
 public:
  // All must outlive the run. `aborted` ends every wait.
  TrainingRun(EventLoop& loop, Network& network, const Dataset& data, RankFaults& faults,
              const StatusLatch& aborted, RunObserver& observer, const TrainingRunOptions& options);
  ~TrainingRun();

  // Makes model, plan and exchange: what a generation's readiness means.
  absl::Status Prepare();

  // Trains, waits for the others, evaluates.
  absl::StatusOr<TrainingResult> Run();

  // From any thread, after Prepare.
  void ServerLost(Rank lost, Rank heir) { exchange_->ServerLost(lost, heir); }

  std::span<const Bucket> buckets() const { return train_step_->buckets(); }

 private:
  absl::StatusOr<experiment::StepRecord> OneStep(Step step);
  void ApplyFaults(const std::vector<FaultChange>& changes, Step step);
  void ReshapeLinks(Step step);
  void EndProcess(const std::vector<FaultChange>& changes, Step step);
  absl::StatusOr<TrainingResult> Train();
  absl::StatusOr<TrainingResult> Evaluate(TrainingResult result);
  absl::Status MakeParts();
  void SetPhase(const char* phase);
  // Refused memory: where, and what it was.
  absl::Status Explain(const absl::Status& status) const;
  void AddCalibration(TrainingResult& result) const;

  EventLoop& loop_;
  Network& network_;
  const Dataset& data_;
  RankFaults& faults_;
  const StatusLatch& aborted_;
  RunObserver& observer_;
  const TrainingRunOptions options_;

  std::unique_ptr<compute::Device> device_;
  std::unique_ptr<collectives::nccl::Queues> queues_;  // null: the device is no GPU
  collectives::CpuReducer reducer_;
  TraceBuffer trace_;
  collectives::nccl::PatienceUntilAborted patience_;
  StepClock clock_;
  Step step_ = 0;
  std::string phase_ = "load";
  absl::AnyInvocable<void(const char*)> progress_;
  absl::AnyInvocable<absl::Status(Step)> meet_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<compute::Optimizer> optimizer_;
  std::unique_ptr<DeviceStep> modelled_;
  std::unique_ptr<SamplePlan> plan_;
  std::unique_ptr<InputQueue> input_;
  std::unique_ptr<GradientExchange> exchange_;
  std::unique_ptr<TrainStep> train_step_;
  std::vector<experiment::StepRecord> records_;
  Network::Traffic traffic_;
  Nanos last_ends_{};
};

}  // namespace ranklab::worker
