// Where adding workers stops paying, and why: sentences on a part's scaling curves.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiment/run_record.h"

namespace ranklab::report {

// One sentence a curve (exchange, servers, network) of `part` that has at least five numbers of
// workers, the largest at least 16: up to where the efficiency is above a half, and whether it is
// latency or bandwidth that takes the rest (CellSummary::latency_share).
std::vector<std::string> DescribeScalingLimits(const std::string& part,
                                               std::span<const experiment::CellSummary> cells);

}  // namespace ranklab::report
