// A coordinator's assignment as this process understands it: the lab read from the text that came
// with it, the cell picked from it.
#pragma once

#include <absl/status/statusor.h>

#include "experiment/lab_spec.h"
#include "protos/coordinator.pb.h"
#include "worker/network.h"

namespace ranklab::worker {

struct CellAssignment {
  experiment::LabSpec spec;  // workers and servers as formed; native if it is a calibration
  std::string lab_hash;
  NetworkOptions network;
};

// Errors: InvalidArgument, the text is not the one whose hash the coordinator gave, or has no such
// cell; the lab reader's own.
absl::StatusOr<CellAssignment> ReadAssignment(const v1::Assignment& assignment, Nanos now,
                                              Nanos clock_offset);

// Steps of a calibration, the first one not counted.
inline constexpr Step kCalibrationSteps = 6;

// The deadline of one step's exchange: the larger of 30 s and 20 times its predicted scaled time,
// unless the lab sets one.
Nanos ExchangeTimeout(const experiment::LabSpec& spec, double time_scale);

}  // namespace ranklab::worker
