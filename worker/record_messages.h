// Records of a run as messages, and back.
#pragma once

#include "experiment/run_record.h"
#include "fabric/link_model.h"
#include "protos/coordinator.pb.h"
#include "worker/network.h"
#include "worker/trace_buffer.h"
#include "worker/training_run.h"

namespace ranklab::worker {

// Instants move from the loop's clock to the coordinator's by `clock_offset`.
v1::StepRow ToMessage(const experiment::StepRecord& record, const TraceBuffer::Taken& trace,
                      Nanos clock_offset);
experiment::StepRecord FromMessage(const v1::StepRow& row);

void AddTo(v1::CellResult& message, const TrainingResult& result);
void AddTo(v1::CellResult& message, const Network::Report& report, const std::string& transport);

// `claimed`: body bytes that the exchange's arithmetic says arrived.
void AddAccount(v1::CellResult& message, const fabric::LinkSpec& port, Bytes claimed,
                const Network::Report& report);

experiment::WorkerRecord WorkerRecordOf(const v1::CellResult& result, Rank rank);
experiment::ServerRecord ServerRecordOf(const v1::CellResult& result, Rank rank, int workers);

}  // namespace ranklab::worker
