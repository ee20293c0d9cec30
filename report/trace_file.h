// One rank's trace in the Trace Event Format: opens in Perfetto, loads in Holistic Trace Analysis.
// Source: the contract that Kineto's files keep (distributedInfo, ProfilerStep#k, launch and kernel
// pairs by correlation), as HTA f4d0062 reads it. A CPU has no streams: compute and communication
// are shown as device lanes and the process name says that they are emulated.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/trace.h"
#include "core/units.h"
#include "experiment/run_record.h"

namespace ranklab::report {

inline constexpr std::size_t kTraceLimit = 50'000'000;  // bytes; larger traces do not open

// The fewest bytes that a span takes in the file. Whoever gathers a rank's spans may stop once
// their sum has reached the limit: the steps from there on are left out of the file anyway.
std::size_t LeastTraceBytes(const Span& span);
std::size_t LeastTraceBytes(const CollectiveSpan& span);
std::size_t LeastTraceBytes(const CounterSample& sample);

struct RankTrace {
  Rank rank = 0;
  int world_size = 1;
  std::string transport = "tcp";  // what really carried the bytes
  double time_scale = 1;          // wall time over modelled time
  std::optional<Nanos> origin{};  // time 0, the same for all ranks of a run; none: the first event
  std::vector<experiment::StepRecord> steps{};
  std::vector<Span> spans{};
  std::vector<CollectiveSpan> collectives{};
  std::vector<CounterSample> counters{};
};

// The file's text; times in modelled microseconds since the origin. At most `limit`
// bytes: later steps are left out whole, and the file says so ("ranklab" at its end, and the
// process's labels). Requires: time_scale > 0.
// Cost: O(what is written), however long the run was.
std::string TraceJson(const RankTrace& trace, std::size_t limit = kTraceLimit);

}  // namespace ranklab::report
