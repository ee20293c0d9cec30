#include "report/trace_file.h"

#include <limits>
#include <map>

#include <absl/strings/str_format.h>

#include "core/check.h"
#include "report/trace_events.h"

namespace ranklab::report {
namespace {

// Of the lines that trace_events makes of each, with numbers of one digit.
constexpr std::size_t kLeastStepBytes = 100;
constexpr std::size_t kLeastSpanBytes = 80;
constexpr std::size_t kLeastKernelBytes = 350;
constexpr std::size_t kLeastCollectiveBytes = 700;
constexpr std::size_t kLeastCounterBytes = 60;

std::size_t SizeOf(const std::vector<std::string>& lines) {
  std::size_t size = 0;
  for (const std::string& line : lines) {
    size += line.size() + 3;  // comma, line end, a blank
  }
  return size;
}

void Append(const std::vector<std::string>& lines, std::string& text, bool& first) {
  for (const std::string& line : lines) {
    text += first ? "\n  " : ",\n  ";
    text += line;
    first = false;
  }
}

// The steps of a trace, and the last one that may fit into a file of at most `limit` bytes.
struct Extent {
  std::size_t steps = 0;
  Step last = std::numeric_limits<Step>::max();
};

Extent ExtentWithin(const RankTrace& trace, std::size_t limit) {
  std::map<Step, std::size_t> bytes;
  for (const auto& step : trace.steps) {
    bytes[step.step] += kLeastStepBytes;
  }
  for (const Span& span : trace.spans) {
    bytes[span.step] += LeastTraceBytes(span);
  }
  for (const CollectiveSpan& span : trace.collectives) {
    bytes[span.step] += LeastTraceBytes(span);
  }
  for (const CounterSample& sample : trace.counters) {
    bytes[sample.step] += LeastTraceBytes(sample);
  }
  Extent extent{.steps = bytes.size()};
  std::size_t sum = 0;
  for (const auto& [step, size] : bytes) {
    sum += size;
    if (sum > limit) {
      extent.last = step;
      break;
    }
  }
  return extent;
}

}  // namespace

std::size_t LeastTraceBytes(const Span& span) {
  return span.track == Track::kCompute || span.track == Track::kCommunication ? kLeastKernelBytes
                                                                              : kLeastSpanBytes;
}
std::size_t LeastTraceBytes(const CollectiveSpan&) { return kLeastCollectiveBytes; }
std::size_t LeastTraceBytes(const CounterSample&) { return kLeastCounterBytes; }

std::string TraceJson(const RankTrace& trace, std::size_t limit) {
  RANKLAB_CHECK(trace.time_scale > 0);
  constexpr std::size_t kTail = 400;  // what is written behind the last event
  const Extent extent = ExtentWithin(trace, limit);
  const TraceEvents events = BuildTraceEvents(trace, extent.last);
  // The rank is found by text search for "rank", a colon, a blank and a number: first in the file.
  std::string text = absl::StrFormat(
      "{\"schemaVersion\": 1, \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %d, "
      "\"world_size\": %d}, \"deviceProperties\": [], \"displayTimeUnit\": \"ms\", "
      "\"baseTimeNanoseconds\": 0,\n \"traceEvents\": [",
      trace.rank, trace.world_size);
  bool first = true;
  Append(events.names, text, first);
  std::size_t steps_written = 0;
  for (const auto& [step, lines] : events.of_step) {
    if (text.size() + SizeOf(lines) + kTail > limit) {
      break;
    }
    Append(lines, text, first);
    ++steps_written;
  }
  const bool capped = steps_written < extent.steps;
  if (capped) {
    const std::string label =
        absl::StrFormat("capped at %d bytes: %d of %d steps", limit, steps_written, extent.steps);
    Append({absl::StrFormat("{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":%d,\"tid\":0,"
                            "\"ts\":0,\"args\":{\"labels\":\"%s\"}}",
                            trace.rank, label)},
           text, first);
  }
  text += absl::StrFormat(
      "],\n \"ranklab\": {\"time_scale\": %g, \"transport\": \"%s\", \"steps_written\": %d, "
      "\"steps_traced\": %d, \"capped\": %s}}\n",
      trace.time_scale, trace.transport, steps_written, extent.steps, capped ? "true" : "false");
  return text;
}

}  // namespace ranklab::report
