// Spans of a step, kept until the step is reported. From any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include "core/trace.h"

namespace ranklab::worker {

class TraceBuffer final : public TraceSink {
 public:
  // Of one step more than this many are dropped and counted.
  static constexpr std::size_t kSpansMax = 4096;

  void Record(const Span& span) override;
  void Record(const CollectiveSpan& span) override;
  void Count(Rank rank, std::string_view counter, double value, Nanos when) override;

  struct Taken {
    std::vector<Span> spans;
    std::vector<CollectiveSpan> collectives;
    std::int64_t dropped = 0;
  };
  // What came since the last call.
  Taken Take();

 private:
  absl::Mutex mutex_;
  Taken taken_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ranklab::worker
