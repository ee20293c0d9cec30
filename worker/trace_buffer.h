// Spans of a step, kept until the step is reported. From any thread.
#pragma once

#include <utility>
#include <vector>

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include "core/trace.h"

namespace ranklab::worker {

class TraceBuffer final : public TraceSink {
 public:
  // Switched off, it keeps nothing.
  explicit TraceBuffer(bool on = true) : on_(on) {}
  bool on() const { return on_; }

  // Of one step more than this many of a sort are dropped and counted.
  static constexpr std::size_t kSpansMax = 4096;

  void Record(const Span& span) override;
  void Record(const CollectiveSpan& span) override;
  void Record(const CounterSample& sample) override;

  struct Taken {
    std::vector<Span> spans;
    std::vector<CollectiveSpan> collectives;
    std::vector<CounterSample> counters;
    std::int64_t dropped = 0;
  };
  // What came since the last call.
  Taken Take();

 private:
  template <typename Event>
  void Keep(std::vector<Event> Taken::*events, const Event& event);

  const bool on_;
  absl::Mutex mutex_;
  Taken taken_ ABSL_GUARDED_BY(mutex_);
};

// The time in which a step computed and communicated at once: communication that the step did not
// wait for. Source of the definition: Holistic Trace Analysis, get_comm_comp_overlap.
Nanos HiddenCommunication(const TraceBuffer::Taken& step);

}  // namespace ranklab::worker
