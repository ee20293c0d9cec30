#include "report/trace_events.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <absl/strings/str_format.h>
#include <nlohmann/json.hpp>

namespace ranklab::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kHostLane = 1;
constexpr int kInputLane = 2;
constexpr int kServerLane = 3;
constexpr int kComputeLane = 7;         // also the stream's number
constexpr int kCommunicationLane = 20;  // also the stream's number
// Between the first lanes of two groups of lanes: more than the spans that a step can hold.
constexpr int kLaneStride = 5000;

std::string Line(const Json& event) {
  return event.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// "text", escaped. Names come from other processes.
std::string Quoted(const std::string& text) { return Line(Json(text)); }

class Builder {
 public:
  Builder(const RankTrace& trace, Step last)
      : trace_(trace), last_(last), base_(trace.origin.value_or(FirstInstant(trace))) {}

  TraceEvents Build() {
    AddSteps();
    AddSpans();
    AddCollectives();
    AddCounters();
    AddNames();
    return std::move(events_);
  }

 private:
  struct Micros {
    std::int64_t begins = 0;
    std::int64_t length = 0;
  };

  static Nanos FirstInstant(const RankTrace& trace) {
    Nanos first = Nanos::max();
    for (const auto& step : trace.steps) {
      first = std::min(first, step.begins);
    }
    for (const Span& span : trace.spans) {
      first = std::min(first, span.begins);
    }
    for (const CollectiveSpan& span : trace.collectives) {
      first = std::min(first, span.entered);
    }
    for (const CounterSample& sample : trace.counters) {
      first = std::min(first, sample.when);
    }
    return first == Nanos::max() ? Nanos::zero() : first;
  }

  // Whole microseconds of modelled time: fractions are rounded inwards by readers, which would tear
  // neighbours apart.
  std::int64_t At(Nanos instant) const {
    return std::llround(static_cast<double>((instant - base_).count()) / trace_.time_scale / 1e3);
  }
  Micros Between(Nanos begins, Nanos ends) const {
    const std::int64_t from = At(begins);
    return {from, std::max<std::int64_t>(0, At(ends) - from)};
  }

  // A complete event; `args` are its members, `"bytes":4096`. Composed as text: a run has millions.
  void AddComplete(Step step, const char* category, const std::string& name, int lane, Micros when,
                   const std::string& args) {
    Add(step,
        absl::StrFormat("{\"ph\":\"X\",\"cat\":\"%s\",\"name\":%s,\"pid\":%d,\"tid\":%d,"
                        "\"ts\":%d,\"dur\":%d,\"args\":{%s}}",
                        category, Quoted(name), trace_.rank, lane, when.begins, when.length, args));
  }

  void Add(Step step, std::string line) { events_.of_step[step].push_back(std::move(line)); }

  void AddSteps() {
    for (const auto& step : trace_.steps) {
      if (step.step > last_) {
        continue;
      }
      AddComplete(step.step, "user_annotation", "ProfilerStep#" + std::to_string(step.step),
                  kHostLane, Between(step.begins, step.begins + step.step_time),
                  absl::StrFormat("\"samples\":%d,\"staleness\":%d", step.samples, step.staleness));
    }
  }

  // A kernel with its launch and the arrow between them.
  void AddKernel(Step step, const std::string& name, int stream, int lane, Micros when,
                 const std::string& args) {
    const std::int64_t correlation = ++last_correlation_;
    const Micros launch{std::max<std::int64_t>(0, when.begins - 1),
                        std::min<std::int64_t>(1, when.begins)};
    AddComplete(step, "cuda_runtime", "cudaLaunchKernel", kHostLane, launch,
                absl::StrFormat("\"correlation\":%d", correlation));
    AddComplete(step, "kernel", name, lane, when,
                absl::StrFormat("\"stream\":%d,\"correlation\":%d%s%s", stream, correlation,
                                args.empty() ? "" : ",", args));
    Add(step,
        absl::StrFormat("{\"ph\":\"s\",\"id\":%d,\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":%d,"
                        "\"tid\":%d,\"ts\":%d}",
                        correlation, trace_.rank, kHostLane, launch.begins));
    Add(step,
        absl::StrFormat("{\"ph\":\"f\",\"bp\":\"e\",\"id\":%d,\"cat\":\"ac2g\",\"name\":\"ac2g\","
                        "\"pid\":%d,\"tid\":%d,\"ts\":%d}",
                        correlation, trace_.rank, lane, when.begins));
  }

  // Lanes of what belongs together: the collectives, or what goes one way between this rank and one
  // server.
  struct LaneGroup {
    std::string name{};
    std::vector<std::int64_t> free_at{};  // [lane]
  };

  // Events of one lane must nest, and exchanges of several buckets overlap: each takes the first
  // lane of its group that is free again.
  int LaneIn(int group, const std::string& name, Micros when) {
    LaneGroup& lanes = lane_groups_[group];
    lanes.name = name;
    auto lane = std::find_if(lanes.free_at.begin(), lanes.free_at.end(),
                             [when](std::int64_t free_at) { return free_at <= when.begins; });
    if (lane == lanes.free_at.end()) {
      lane = lanes.free_at.insert(lane, 0);
    }
    *lane = when.begins + when.length;
    return kCommunicationLane + kLaneStride * group +
           static_cast<int>(lane - lanes.free_at.begin());
  }

  void AddSpans() {
    std::vector<const Span*> spans;
    for (const Span& span : trace_.spans) {
      if (span.step <= last_) {
        spans.push_back(&span);
      }
    }
    std::stable_sort(spans.begin(), spans.end(),
                     [](const Span* a, const Span* b) { return a->begins < b->begins; });
    for (const Span* span : spans) {
      AddSpan(*span);
    }
  }

  void AddSpan(const Span& span) {
    const Micros when = Between(span.begins, span.ends);
    const std::string args =
        span.bytes > 0 ? absl::StrFormat("\"bytes\":%d", span.bytes) : std::string();
    switch (span.track) {
      case Track::kCompute:
        AddKernel(span.step, "ranklab_" + span.name, kComputeLane, kComputeLane, when, args);
        return;
      case Track::kCommunication:
        AddServerSpan(span, when, args);
        return;
      case Track::kHost:
        AddHostSpan(span, kHostLane, when, args);
        return;
      case Track::kInput:
        AddHostSpan(span, kInputLane, when, args);
        return;
      case Track::kServer:
        AddHostSpan(span, kServerLane, when, args);
        return;
    }
  }

  void AddServerSpan(const Span& span, Micros when, std::string args) {
    const bool pull = span.name == "pull";
    args += absl::StrFormat("%s\"server\":%d", args.empty() ? "" : ",", span.server);
    if (span.bucket >= 0) {
      args += absl::StrFormat(",\"bucket\":%d", span.bucket);
    }
    args += ",\"transport\":" + Quoted(trace_.transport);
    const int lane = LaneIn(
        2 * span.server + (pull ? 1 : 0),
        span.name + (pull ? " from server " : " to server ") + std::to_string(span.server), when);
    AddKernel(span.step, CommunicationName("ps." + span.name), kCommunicationLane, lane, when,
              args);
  }

  void AddHostSpan(const Span& span, int lane, Micros when, const std::string& args) {
    AddComplete(span.step, "cpu_op", span.name, lane, when, args);
  }

  void AddCollectives() {
    std::vector<const CollectiveSpan*> spans;
    for (const CollectiveSpan& span : trace_.collectives) {
      if (span.step <= last_) {
        spans.push_back(&span);
      }
    }
    std::stable_sort(spans.begin(), spans.end(),
                     [](const auto* a, const auto* b) { return a->entered < b->entered; });
    for (const CollectiveSpan* span : spans) {
      const Micros when = Between(span->entered, span->left);
      const std::int64_t elements = span->bytes / 4;
      const std::string args = absl::StrFormat(
          "\"transport\":%s,\"algorithm\":%s,\"bytes\":%d,\"bucket\":%d,"
          "\"Collective name\":\"allreduce\",\"In msg nelems\":%d,\"Out msg nelems\":%d,"
          "\"Group size\":%d,\"dtype\":\"Float\",\"Process Group Name\":\"%d\",\"Seq\":%d,"
          "\"Rank\":%d,\"first byte in (us)\":%d,\"last byte out (us)\":%d",
          Quoted(trace_.transport), Quoted(span->algorithm), span->bytes, span->bucket, elements,
          elements, trace_.world_size, span->group, span->sequence, span->rank,
          At(span->first_byte_in) - when.begins, At(span->last_byte_out) - when.begins);
      AddKernel(span->step, CommunicationName(span->algorithm), kCommunicationLane,
                LaneIn(0, "communication lane", when), when, args);
    }
  }

  // A counter is the process's, not a lane's.
  void AddCounters() {
    for (const CounterSample& sample : trace_.counters) {
      if (sample.step <= last_) {
        Add(sample.step,
            absl::StrFormat(
                "{\"ph\":\"C\",\"name\":%s,\"pid\":%d,\"ts\":%d,\"args\":{\"value\":%s}}",
                Quoted(sample.name), trace_.rank, At(sample.when), Line(Json(sample.value))));
      }
    }
  }

  void AddName(const char* what, int lane, const std::string& name) {
    events_.names.push_back(Line({{"ph", "M"},
                                  {"name", what},
                                  {"pid", trace_.rank},
                                  {"tid", lane},
                                  {"ts", 0},
                                  {"args", {{"name", name}}}}));
  }

  void AddNames() {
    AddName("process_name", 0,
            "rank " + std::to_string(trace_.rank) + " (CPU, device lane emulated)");
    AddName("thread_name", kHostLane, "host");
    AddName("thread_name", kInputLane, "input");
    AddName("thread_name", kComputeLane, "compute lane");
    for (const auto& [group, lanes] : lane_groups_) {
      for (std::size_t lane = 0; lane < lanes.free_at.size(); ++lane) {
        AddName("thread_name", kCommunicationLane + kLaneStride * group + static_cast<int>(lane),
                lane == 0 ? lanes.name : lanes.name + ", " + std::to_string(lane + 1));
      }
    }
  }

  const RankTrace& trace_;
  const Step last_;
  Nanos base_;
  TraceEvents events_;
  std::int64_t last_correlation_ = 0;
  std::map<int, LaneGroup> lane_groups_;
};

}  // namespace

std::string CommunicationName(const std::string& algorithm) {
  // "ring" and "allreduce.ring" are RING, "ps.push" is PS_PUSH.
  std::string name = algorithm.starts_with("allreduce.") ? algorithm.substr(10) : algorithm;
  for (char& letter : name) {
    letter = letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A')
             : (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ? letter
                                                                                    : '_';
  }
  return "ncclKernel_AllReduce_" + name + "_LL_Sum_float";
}

TraceEvents BuildTraceEvents(const RankTrace& trace, Step last) {
  return Builder(trace, last).Build();
}

}  // namespace ranklab::report
