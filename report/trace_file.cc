#include "report/trace_file.h"

#include <absl/strings/str_format.h>

#include "core/check.h"
#include "report/trace_events.h"

namespace ranklab::report {
namespace {

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

}  // namespace

std::string TraceJson(const RankTrace& trace, std::size_t limit) {
  RANKLAB_CHECK(trace.time_scale > 0);
  constexpr std::size_t kTail = 400;  // what is written behind the last event
  const TraceEvents events = BuildTraceEvents(trace);
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
  const bool capped = steps_written < events.of_step.size();
  if (capped) {
    const std::string label = absl::StrFormat("capped at %d bytes: %d of %d steps", limit,
                                              steps_written, events.of_step.size());
    Append({absl::StrFormat("{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":%d,\"tid\":0,"
                            "\"ts\":0,\"args\":{\"labels\":\"%s\"}}",
                            trace.rank, label)},
           text, first);
  }
  text += absl::StrFormat(
      "],\n \"ranklab\": {\"time_scale\": %g, \"transport\": \"%s\", \"steps_written\": %d, "
      "\"steps_traced\": %d, \"capped\": %s}}\n",
      trace.time_scale, trace.transport, steps_written, events.of_step.size(),
      capped ? "true" : "false");
  return text;
}

}  // namespace ranklab::report
