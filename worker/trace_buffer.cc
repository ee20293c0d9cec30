#include "worker/trace_buffer.h"

namespace ranklab::worker {

void TraceBuffer::Record(const Span& span) {
  absl::MutexLock lock(&mutex_);
  if (taken_.spans.size() >= kSpansMax) {
    ++taken_.dropped;
    return;
  }
  taken_.spans.push_back(span);
}

void TraceBuffer::Record(const CollectiveSpan& span) {
  absl::MutexLock lock(&mutex_);
  if (taken_.collectives.size() >= kSpansMax) {
    ++taken_.dropped;
    return;
  }
  taken_.collectives.push_back(span);
}

void TraceBuffer::Count(Rank, std::string_view, double, Nanos) {}

TraceBuffer::Taken TraceBuffer::Take() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(taken_, Taken{});
}

}  // namespace ranklab::worker
