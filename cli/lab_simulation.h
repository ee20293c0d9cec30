// The simulated cells of a lab, one after the other, into its record: all of them for `ranklab
// simulate`, those of parts that say `simulate: true` for `ranklab run`.
#pragma once

#include <cstdint>

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "cli/record_writer.h"
#include "experiment/lab_spec.h"
#include "worker/dataset_cache.h"

namespace ranklab::cli {

class LabSimulation {
 public:
  // Groups of more workers than this are computed by their closed form, where there is one: a ring
  // of p ranks has 2 p (p - 1) messages a bucket.
  static constexpr int kMostPlayed = 128;

  LabSimulation(const experiment::Lab& lab, RecordWriter& writer) : lab_(lab), writer_(writer) {}

  // The cells of the parts that `picked` wants. `before` runs before each, with its name; an error
  // of it ends the simulation. A cell that has no simulation gets a row that says why. Requires: a
  // known number of workers in each cell. Errors: `before`'s; as sim::SimulateCell and
  // RecordWriter::Add, after the name of the cell.
  absl::Status Run(absl::FunctionRef<bool(const experiment::Part&)> picked,
                   absl::FunctionRef<absl::Status(const std::string& name)> before);

  int simulated() const { return simulated_; }
  int not_simulated() const { return not_simulated_; }

 private:
  absl::Status Simulate(const experiment::Cell& cell);
  absl::Status Play(const experiment::Cell& cell, std::int64_t samples, RecordedRun& recorded);
  absl::StatusOr<std::int64_t> TrainingSamplesOf(const experiment::DataSpec& spec);

  const experiment::Lab& lab_;
  RecordWriter& writer_;
  worker::DatasetCache datasets_;
  int simulated_ = 0;
  int not_simulated_ = 0;
};

}  // namespace ranklab::cli
