// The events of one rank's trace, step by step.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/units.h"
#include "report/trace_file.h"

namespace ranklab::report {

// Each event one line of JSON, without the comma. Step 0: what lies outside the steps.
struct TraceEvents {
  std::vector<std::string> names{};  // processes and threads; first in the file
  std::map<Step, std::vector<std::string>> of_step{};
};
// Steps after `last` are left out.
TraceEvents BuildTraceEvents(const RankTrace& trace, Step last);

// "ncclKernel_AllReduce_RING_LL_Sum_float": the one spelling of a communication kernel that every
// analysis accepts; the true transport is in the event's arguments.
std::string CommunicationName(const std::string& algorithm);

}  // namespace ranklab::report
