// One cell of a lab by the closed forms of worker/predict: what takes the place of playing a group
// that is too large to be played message by message. Every rank does the same, so one stands for
// all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <absl/status/statusor.h>

#include "experiment/lab_spec.h"
#include "experiment/run_record.h"

namespace ranklab::sim {

// Why a cell has no closed form; nothing where it has one. `training_samples`: of the cell's data
// set.
std::optional<std::string> WhyNoClosedForm(const experiment::LabSpec& spec,
                                           std::int64_t training_samples);

// One repeat; CellRun::ranks_alike is the number of workers. Requires: WhyNoClosedForm says
// nothing. Errors: as worker::PredictStep.
absl::StatusOr<experiment::CellRun> ClosedFormCell(const experiment::Cell& cell,
                                                   std::int64_t training_samples);

}  // namespace ranklab::sim
