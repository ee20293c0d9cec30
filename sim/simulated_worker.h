// A worker's steps in virtual time: what worker/train_step does on a thread, as a state machine on
// the loop. Compute is the device model's time and nothing else; the exchange, the faults, the
// sample plan and the buckets are the live ones.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <absl/functional/any_invocable.h>

#include "core/event_loop.h"
#include "experiment/run_record.h"
#include "sim/simulated_input.h"
#include "transport/shaped_wire.h"
#include "worker/buckets.h"
#include "worker/exchange_machine.h"
#include "worker/modelled_step.h"
#include "worker/rank_faults.h"
#include "worker/sample_plan.h"
#include "worker/trace_buffer.h"

namespace ranklab::sim {

// All must outlive the worker, and it the loop's tasks.
struct SimulatedWorkerDeps {
  EventLoop& loop;
  worker::ExchangeMachine& exchange;
  worker::ModelledStep& modelled;
  worker::RankFaults& faults;
  worker::TraceBuffer& trace;
  const worker::SamplePlan& plan;
  std::span<const worker::Bucket> buckets;
  transport::ShapedWire& wire;           // that link injections shape and bytes are counted on
  std::span<const Endpoint> peers;       // on that wire
  absl::AnyInvocable<void(Task)>& meet;  // runs its task once all workers have called it
};

struct SimulatedWorkerOptions {
  Rank rank = 0;
  int workers = 1;
  Step steps = 0;
  int micro_batches = 1;
  InputOptions input{};
  bool overlap = true;
  bool meet_before_exchange = false;
};

// An injection that began or ended, and what it did.
struct FaultLine {
  Rank rank = 0;
  Step step = 0;
  std::string asked;
  std::string applied;
  bool ends = false;
};

class SimulatedWorker {
 public:
  SimulatedWorker(const SimulatedWorkerDeps& deps, const SimulatedWorkerOptions& options);

  // Takes its steps; `finished` runs once, with the first error.
  void Begin(DoneFn finished);

  // Per step, in modelled time; losses are NaN: nothing is trained.
  const std::vector<experiment::StepRecord>& records() const { return records_; }
  const worker::TraceBuffer::Taken& traced() const { return traced_; }
  const std::vector<FaultLine>& faults() const { return fault_lines_; }

  bool finished() const { return finished_ == nullptr; }
  std::string Where() const;  // "worker 2 in step 14, waiting for ..."

 private:
  using Stage = void (SimulatedWorker::*)();

  // The stages of a step, each begun by the one before.
  void BeginStep();
  void TakeBatch();
  void Forward();
  void Backward();
  void BackwardLayer();
  void Meet();
  void Exchange();
  void Update();
  void EndStep();
  void Leave();

  void ReshapeLinks();
  void BeginBucket(const worker::Bucket& bucket);
  void OnExchanged(const absl::Status& status);
  void CountBytes();
  void Finish(const absl::Status& status);
  void After(Nanos duration, Stage next);
  void RecordSpan(const char* name, Track track, Nanos begins);
  std::int64_t SamplesOfMicroBatch() const;

  const SimulatedWorkerDeps deps_;
  const SimulatedWorkerOptions options_;
  SimulatedInput input_;
  DoneFn finished_;

  Step step_ = 1;
  experiment::StepRecord record_;
  std::vector<worker::FaultChange> changes_;
  Nanos stage_begins_{};
  int micro_batch_ = 0;
  int layer_ = 0;
  std::size_t next_bucket_ = 0;
  int open_ = 0;  // parts of the exchange under way
  absl::Status exchanged_;
  Nanos last_ends_{};
  Bytes sent_ = 0;
  Bytes received_ = 0;

  std::vector<experiment::StepRecord> records_;
  worker::TraceBuffer::Taken traced_;
  std::vector<FaultLine> fault_lines_;
};

}  // namespace ranklab::sim
