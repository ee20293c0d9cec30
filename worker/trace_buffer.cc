#include "worker/trace_buffer.h"

#include <algorithm>

namespace ranklab::worker {
namespace {

struct Interval {
  Nanos begins{}, ends{};
};

// The same instants, each in one interval only.
std::vector<Interval> Union(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.begins < b.begins; });
  std::vector<Interval> apart;
  for (const Interval& interval : intervals) {
    if (apart.empty() || interval.begins > apart.back().ends) {
      apart.push_back(interval);
    } else {
      apart.back().ends = std::max(apart.back().ends, interval.ends);
    }
  }
  return apart;
}

}  // namespace

template <typename Event>
void TraceBuffer::Keep(std::vector<Event> Taken::*events, const Event& event) {
  if (!on_) {
    return;
  }
  absl::MutexLock lock(&mutex_);
  if ((taken_.*events).size() >= kSpansMax) {
    ++taken_.dropped;
    return;
  }
  (taken_.*events).push_back(event);
}

void TraceBuffer::Record(const Span& span) { Keep(&Taken::spans, span); }
void TraceBuffer::Record(const CollectiveSpan& span) { Keep(&Taken::collectives, span); }
void TraceBuffer::Record(const CounterSample& sample) { Keep(&Taken::counters, sample); }

TraceBuffer::Taken TraceBuffer::Take() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(taken_, Taken{});
}

Nanos HiddenCommunication(const TraceBuffer::Taken& step) {
  std::vector<Interval> compute;
  std::vector<Interval> communication;
  for (const Span& span : step.spans) {
    if (span.track == Track::kCompute) {
      compute.push_back({span.begins, span.ends});
    } else if (span.track == Track::kCommunication) {
      communication.push_back({span.begins, span.ends});
    }
  }
  for (const CollectiveSpan& span : step.collectives) {
    communication.push_back({span.entered, span.left});
  }
  compute = Union(std::move(compute));
  Nanos both{};
  for (const Interval& busy : Union(std::move(communication))) {
    for (const Interval& other : compute) {
      both += std::max(Nanos::zero(),
                       std::min(busy.ends, other.ends) - std::max(busy.begins, other.begins));
    }
  }
  return both;
}

}  // namespace ranklab::worker
