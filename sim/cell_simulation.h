// One cell of a lab in virtual time, on one thread: simulated workers, real communicators or real
// parameter servers, over the shaper's own arithmetic at time scale 1.
//
//   SimulatedWorker -> worker/exchange_machine -> collectives/communicator | ps/client -> ps/server
//                                   transport/messenger -> transport/shaped_wire -> local_wire
//
// Bytes on the wire are the modelled ones; their values are not there, and nothing is learned.
// What the live program spends outside the model (serving, summing, system calls) takes no time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "experiment/lab_spec.h"
#include "experiment/run_record.h"
#include "sim/simulated_worker.h"
#include "worker/trace_buffer.h"

namespace ranklab::sim {

struct SimulatedCell {
  // One repeat: another one would be the same. Without predictions.
  experiment::CellRun run;
  std::vector<worker::TraceBuffer::Taken> traces;  // [rank]
  std::vector<FaultLine> faults;                   // by rank, then by step
  std::int64_t events = 0;                         // of the virtual loop
};

// Why a cell has no simulation; nothing where it has one.
std::optional<std::string> WhyNotSimulated(const experiment::LabSpec& spec);

// `training_samples`: of the cell's data set. The same arguments give the same result.
// Requires: WhyNotSimulated says nothing; cluster.workers of at least 1.
// Errors: InvalidArgument, a preset, device model, algorithm or model that makes no sense;
// DeadlineExceeded or Internal, an exchange that does not end, and whom it waits for.
absl::StatusOr<SimulatedCell> SimulateCell(const experiment::Cell& cell,
                                           std::int64_t training_samples);

}  // namespace ranklab::sim
