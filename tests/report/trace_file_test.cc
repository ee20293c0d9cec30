// Every rule of the trace contract, on the file as text and as JSON.
#include "report/trace_file.h"

#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/trace_events.h"

namespace ranklab::report {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Nanos Us(std::int64_t us) { return std::chrono::microseconds(us); }

// `steps` steps of 1000 us modelled at scale 10: forward, backward, optimizer, two overlapping
// exchanges.
RankTrace TraceOf(int steps, bool parameter_server = false) {
  RankTrace trace{.rank = 2, .world_size = 4, .transport = "grpc", .time_scale = 10};
  for (Step step = 1; step <= steps; ++step) {
    const Nanos begins = Us(50'000 + 10'000 * (step - 1));
    const auto span = [&](Track track, const char* name, std::int64_t from, std::int64_t to) {
      trace.spans.push_back({.rank = 2,
                             .track = track,
                             .name = name,
                             .step = step,
                             .begins = begins + Us(from),
                             .ends = begins + Us(to)});
    };
    trace.steps.push_back({.step = step, .samples = 8, .begins = begins, .step_time = Us(10'000)});
    span(Track::kInput, "input", 0, 100);
    trace.counters.push_back({.rank = 2,
                              .name = "input queue depth",
                              .step = step,
                              .value = static_cast<double>(step % 3),
                              .when = begins + Us(100)});
    span(Track::kCompute, "forward", 100, 3'000);
    span(Track::kCompute, "backward", 3'000, 8'000);
    span(Track::kHost, "exchange wait", 8'000, 9'000);
    span(Track::kCompute, "optimizer", 9'000, 10'000);
    if (parameter_server) {
      // Two buckets on their way to server 1 at once, and what comes back from it meanwhile.
      for (const int bucket : {0, 1}) {
        span(Track::kCommunication, "push", 5'000 + 500 * bucket, 8'000 + 300 * bucket);
        trace.spans.back().server = 1;
        trace.spans.back().bucket = bucket;
        trace.spans.back().bytes = 4096;
      }
      span(Track::kCommunication, "pull", 6'000, 9'000);
      trace.spans.back().server = 1;
      trace.spans.back().bytes = 8192;
      continue;
    }
    for (const int bucket : {0, 1}) {
      trace.collectives.push_back({.rank = 2,
                                   .sequence = static_cast<std::uint64_t>(step),
                                   .algorithm = "ring",
                                   .step = step,
                                   .bucket = bucket,
                                   .bytes = 4096,
                                   .entered = begins + Us(5'000 + 1'000 * bucket),
                                   .first_byte_in = begins + Us(6'500),
                                   .last_byte_out = begins + Us(7'000),
                                   .left = begins + Us(8'000 + 1'000 * bucket)});
    }
  }
  return trace;
}

std::vector<json> EventsOf(const json& file, const std::string& category) {
  std::vector<json> events;
  for (const json& event : file["traceEvents"]) {
    if (event.value("cat", "") == category) {
      events.push_back(event);
    }
  }
  return events;
}

TEST(TraceFile, TheRankIsFoundByTextSearch) {
  const std::string text = TraceJson(TraceOf(3));
  std::smatch match;
  ASSERT_TRUE(std::regex_search(text, match, std::regex("\"rank\":\\s+(\\d+)")));
  EXPECT_EQ(match[1], "2");
  EXPECT_LT(text.find("distributedInfo"), text.find("traceEvents"));
  EXPECT_EQ(text.find("\"rank\"", text.find("traceEvents")), std::string::npos)
      << "events spell it Rank";
  const json file = json::parse(text);
  EXPECT_EQ(file["schemaVersion"], 1);
  EXPECT_EQ(file["distributedInfo"]["backend"], "nccl");
  EXPECT_EQ(file["distributedInfo"]["world_size"], 4);
  EXPECT_EQ(file["displayTimeUnit"], "ms");
  EXPECT_TRUE(file.contains("baseTimeNanoseconds"));
  EXPECT_TRUE(file.contains("deviceProperties"));
}

TEST(TraceFile, StepsAreMarkedFromOneWithoutAStream) {
  const json file = json::parse(TraceJson(TraceOf(3)));
  const std::vector<json> marks = EventsOf(file, "user_annotation");
  ASSERT_THAT(marks, SizeIs(3));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(marks[i]["name"], "ProfilerStep#" + std::to_string(i + 1));
    EXPECT_EQ(marks[i]["ts"], 1000 * i) << "modelled, from the first step";
    EXPECT_EQ(marks[i]["dur"], 1000);
    EXPECT_FALSE(marks[i]["args"].contains("stream"));
  }
}

TEST(TraceFile, RanksOfARunShareTheirTimeZero) {
  RankTrace trace = TraceOf(1);
  trace.origin = Us(30'000);
  const json file = json::parse(TraceJson(trace));
  EXPECT_EQ(EventsOf(file, "user_annotation")[0]["ts"], (50'000 - 30'000) / 10);
}

TEST(TraceFile, ACounterSaysHowManyBatchesWereReady) {
  const json file = json::parse(TraceJson(TraceOf(3)));
  std::vector<json> samples;
  for (const json& event : file["traceEvents"]) {
    if (event["ph"] == "C") {
      EXPECT_EQ(event["name"], "input queue depth");
      samples.push_back({event["ts"], event["args"]["value"]});
    }
  }
  EXPECT_EQ(samples, (std::vector<json>{{10, 1.0}, {1010, 2.0}, {2010, 0.0}}));
}

TEST(TraceFile, EveryKernelHasOneLaunchBeforeIt) {
  const json file = json::parse(TraceJson(TraceOf(4)));
  std::map<int, json> launches;
  for (const json& launch : EventsOf(file, "cuda_runtime")) {
    EXPECT_EQ(launch["name"], "cudaLaunchKernel");
    EXPECT_FALSE(launch["args"].contains("stream"));
    EXPECT_TRUE(launches.emplace(launch["args"]["correlation"], launch).second);
  }
  const std::vector<json> kernels = EventsOf(file, "kernel");
  EXPECT_EQ(kernels.size(), launches.size());
  EXPECT_EQ(kernels.size(), 4U * 5U);
  for (const json& kernel : kernels) {
    const auto launch = launches.find(kernel["args"]["correlation"]);
    ASSERT_NE(launch, launches.end());
    EXPECT_LE(launch->second["ts"], kernel["ts"]);
    EXPECT_GT(kernel["args"]["stream"], 0);
    EXPECT_GE(kernel["dur"], 0);
  }
}

TEST(TraceFile, CommunicationIsClassifiedByNameAndTellsItsTransport) {
  for (const bool parameter_server : {false, true}) {
    const json file = json::parse(TraceJson(TraceOf(1, parameter_server)));
    int communication = 0;
    for (const json& kernel : EventsOf(file, "kernel")) {
      const std::string name = kernel["name"];
      if (name.starts_with("ncclKernel")) {
        ++communication;
        EXPECT_EQ(kernel["args"]["stream"], 20);
        EXPECT_EQ(kernel["args"]["transport"], "grpc");
      } else {
        EXPECT_THAT(name, HasSubstr("ranklab_"));
        EXPECT_EQ(kernel["args"]["stream"], 7);
        EXPECT_EQ(kernel["tid"], 7);
      }
    }
    EXPECT_EQ(communication, parameter_server ? 3 : 2);
  }
  EXPECT_EQ(CommunicationName("ring"), "ncclKernel_AllReduce_RING_LL_Sum_float");
  EXPECT_EQ(CommunicationName("allreduce.ring"), "ncclKernel_AllReduce_RING_LL_Sum_float");
  EXPECT_EQ(CommunicationName("ps.push"), "ncclKernel_AllReduce_PS_PUSH_LL_Sum_float");
}

TEST(TraceFile, EventsOfALaneNest) {
  for (const bool parameter_server : {false, true}) {
    const json file = json::parse(TraceJson(TraceOf(3, parameter_server)));
    std::map<int, std::vector<std::pair<std::int64_t, std::int64_t>>> lanes;
    for (const json& event : file["traceEvents"]) {
      if (event["ph"] == "X") {
        const std::int64_t begins = event["ts"];
        lanes[event["tid"]].emplace_back(begins, begins + event["dur"].get<std::int64_t>());
      }
    }
    EXPECT_EQ(lanes.size(), parameter_server ? 6U : 5U)
        << "host, input, compute, two for exchanges at once, one for what comes from a server";
    for (const auto& [lane, intervals] : lanes) {
      for (const auto& [a, b] : intervals) {
        for (const auto& [c, d] : intervals) {
          EXPECT_FALSE(a < c && c < b && b < d)
              << "lane " << lane << ": " << a << "-" << b << " crosses " << c << "-" << d;
        }
      }
    }
  }
}

TEST(TraceFile, AServerAndADirectionHaveTheirLanes) {
  const json file = json::parse(TraceJson(TraceOf(2, /*parameter_server=*/true)));
  std::map<int, std::string> names;
  for (const json& event : file["traceEvents"]) {
    if (event["name"] == "thread_name") {
      names[event["tid"]] = event["args"]["name"];
    }
  }
  std::multiset<std::string> seen;
  for (const json& kernel : EventsOf(file, "kernel")) {
    const json& args = kernel["args"];
    if (args.contains("server")) {
      seen.insert(names[kernel["tid"]] + ": " + (args.contains("bucket") ? "bucket, " : "") +
                  std::to_string(args["bytes"].get<int>()));
      EXPECT_EQ(args["server"], 1);
    }
  }
  const std::multiset<std::string> expected = {
      "pull from server 1: 8192",          "pull from server 1: 8192",
      "push to server 1, 2: bucket, 4096", "push to server 1, 2: bucket, 4096",
      "push to server 1: bucket, 4096",    "push to server 1: bucket, 4096"};
  EXPECT_EQ(seen, expected);
}

TEST(TraceFile, ArrowsHaveBothEnds) {
  const json file = json::parse(TraceJson(TraceOf(2)));
  std::map<int, std::set<std::string>> arrows;
  for (const json& event : EventsOf(file, "ac2g")) {
    arrows[event["id"]].insert(event["ph"]);
    EXPECT_EQ(event["ph"] == "f", event.contains("bp"));
  }
  EXPECT_EQ(arrows.size(), 10U);
  for (const auto& [id, ends] : arrows) {
    EXPECT_EQ(ends, (std::set<std::string>{"s", "f"}));
  }
}

TEST(TraceFile, SaysThatTheLanesAreEmulatedAndNamesComeFirst) {
  const json file = json::parse(TraceJson(TraceOf(1)));
  EXPECT_EQ(file["traceEvents"][0]["ph"], "M");
  EXPECT_EQ(file["traceEvents"][0]["name"], "process_name");
  EXPECT_EQ(file["traceEvents"][0]["args"]["name"], "rank 2 (CPU, device lane emulated)");
}

TEST(TraceFile, IsCappedAtWholeStepsAndSaysSo) {
  const RankTrace trace = TraceOf(100);
  const std::string whole = TraceJson(trace);
  EXPECT_EQ(json::parse(whole)["ranklab"]["capped"], false);
  const std::string text = TraceJson(trace, whole.size() / 2);
  EXPECT_LE(text.size(), whole.size() / 2);
  const json file = json::parse(text);
  EXPECT_EQ(file["ranklab"]["capped"], true);
  const std::size_t steps = EventsOf(file, "user_annotation").size();
  EXPECT_EQ(file["ranklab"]["steps_written"], steps);
  EXPECT_GT(steps, 40U);
  EXPECT_LT(steps, 50U);
  EXPECT_EQ(EventsOf(file, "kernel").size(), steps * 5);
  EXPECT_THAT(text, HasSubstr("capped at"));
}

// A run may be far longer than its file: what cannot fit is not even built.
TEST(TraceFile, StepsBehindTheLastAreNotBuilt) {
  const TraceEvents events = BuildTraceEvents(TraceOf(100), /*last=*/7);
  EXPECT_THAT(events.of_step, SizeIs(7));
  EXPECT_EQ(events.of_step.rbegin()->first, 7);
}

// Whoever stops at the limit by this sum must not lose a step that the file has room for.
TEST(TraceFile, WhatASpanTakesIsEstimatedFromBelow) {
  for (const bool parameter_server : {false, true}) {
    const RankTrace trace = TraceOf(1, parameter_server);
    std::size_t least = 0;
    for (const Span& span : trace.spans) {
      least += LeastTraceBytes(span);
    }
    for (const CollectiveSpan& span : trace.collectives) {
      least += LeastTraceBytes(span);
    }
    for (const CounterSample& sample : trace.counters) {
      least += LeastTraceBytes(sample);
    }
    const std::size_t growth =
        TraceJson(TraceOf(2, parameter_server)).size() - TraceJson(trace).size();
    EXPECT_LE(least, growth);
    EXPECT_GE(least, growth / 2);
  }
}

TEST(TraceFile, NamesAreEscaped) {
  RankTrace trace = TraceOf(1);
  trace.spans[0].name = "a \"quoted\" \\ name\nwith a line \xff";
  const json file = json::parse(TraceJson(trace), nullptr, false);
  EXPECT_FALSE(file.is_discarded());
}

TEST(TraceFile, AnEmptyTraceIsAFileToo) {
  const json file = json::parse(TraceJson({}));
  EXPECT_EQ(file["ranklab"]["steps_written"], 0);
}

}  // namespace
}  // namespace ranklab::report
