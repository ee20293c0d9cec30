// What a run's numbers say, in words; nothing where they do not carry it. A difference is claimed
// only between cells of at least two repeats whose ranges do not touch, and not where cores were
// oversubscribed.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiment/lab_spec.h"
#include "experiment/run_record.h"

namespace ranklab::report {

// In the order of the parts: where the parameter server loses to the ring and by how much; how
// efficiency differs between networks; which staleness bound helped against a slow rank; last, over
// the parts, which bound helps against slowness that stays and which against slowness that rotates.
std::vector<std::string> WriteSentences(const experiment::Lab& lab,
                                        std::span<const experiment::CellSummary> cells);

}  // namespace ranklab::report
