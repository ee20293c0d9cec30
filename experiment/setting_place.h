// Where a setting of a lab is written, for those who refuse it after the lab was read.
#pragma once

#include <string>
#include <string_view>

#include "experiment/lab_spec.h"

namespace ranklab::experiment {

// The place of `path` ("exchange.kind") as it holds for `cell`: "labs/x.yaml:12" or "--set
// exchange.kind=nccl"; the file alone where nothing sets it.
std::string PlaceOf(const Lab& lab, const Cell& cell, std::string_view path);

}  // namespace ranklab::experiment
