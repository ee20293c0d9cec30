// What cannot be run of a lab that reads well: found before anything is started.
#pragma once

#include <absl/status/status.h>

#include "experiment/lab_spec.h"

namespace ranklab::cli {

// By this build: models, exchanges, devices.
// Errors: InvalidArgument: "labs/x.yaml:6: exchange.kind is "nccl"; ...".
absl::Status CheckBuildCanRun(const experiment::Lab& lab);

// Workers and servers that one machine is asked to run.
inline constexpr int kMostLocalProcesses = 256;

// On processes of this machine: there are not too many, the lab's files are there and are what they
// should be, the number of workers is known, and there is a GPU for those who want one.
// `workers_for_all`: for `workers: all`; 0: nobody said.
// Errors: InvalidArgument, likewise.
absl::Status CheckThisMachineCanRun(const experiment::Lab& lab, int workers_for_all);

}  // namespace ranklab::cli
