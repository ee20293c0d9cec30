#include "worker/trace_buffer.h"

#include <gtest/gtest.h>

namespace ranklab::worker {
namespace {

void Compute(TraceBuffer::Taken& step, int begins, int ends) {
  step.spans.push_back(
      {.track = Track::kCompute, .name = "forward", .begins = Nanos(begins), .ends = Nanos(ends)});
}
void Push(TraceBuffer::Taken& step, int begins, int ends) {
  step.spans.push_back({.track = Track::kCommunication,
                        .name = "push",
                        .begins = Nanos(begins),
                        .ends = Nanos(ends)});
}
void Collective(TraceBuffer::Taken& step, int entered, int left) {
  step.collectives.push_back({.algorithm = "ring", .entered = Nanos(entered), .left = Nanos(left)});
}

TEST(HiddenCommunication, IsWhereBothLanesAreBusy) {
  TraceBuffer::Taken step;
  Compute(step, 0, 100);    // forward
  Compute(step, 100, 300);  // backward
  Collective(step, 150, 400);
  Compute(step, 420, 450);  // optimizer
  EXPECT_EQ(HiddenCommunication(step), Nanos(150));
}

TEST(HiddenCommunication, OverlappingBucketsCountOnce) {
  TraceBuffer::Taken step;
  Compute(step, 0, 100);
  Collective(step, 40, 90);
  Push(step, 60, 120);
  EXPECT_EQ(HiddenCommunication(step), Nanos(60));
}

TEST(HiddenCommunication, IsNothingWithoutOneOfThem) {
  TraceBuffer::Taken step;
  EXPECT_EQ(HiddenCommunication(step), Nanos(0));
  Compute(step, 0, 100);
  step.spans.push_back(
      {.track = Track::kHost, .name = "pause", .begins = Nanos(0), .ends = Nanos(50)});
  EXPECT_EQ(HiddenCommunication(step), Nanos(0));
  Collective(step, 100, 200);
  EXPECT_EQ(HiddenCommunication(step), Nanos(0));
}

TEST(TraceBuffer, SwitchedOffKeepsNothing) {
  for (const bool on : {false, true}) {
    TraceBuffer buffer(on);
    buffer.Record(Span{});
    buffer.Record(CollectiveSpan{});
    buffer.Record(CounterSample{.name = "input queue depth"});
    const TraceBuffer::Taken taken = buffer.Take();
    const std::size_t each = on ? 1 : 0;
    EXPECT_EQ(taken.spans.size(), each);
    EXPECT_EQ(taken.collectives.size(), each);
    EXPECT_EQ(taken.counters.size(), each);
  }
}

TEST(TraceBuffer, OfOneStepALimitedNumberIsKeptAndTheRestCounted) {
  TraceBuffer buffer;
  for (std::size_t i = 0; i < TraceBuffer::kSpansMax + 3; ++i) {
    buffer.Record(Span{});
  }
  const TraceBuffer::Taken taken = buffer.Take();
  EXPECT_EQ(taken.spans.size(), TraceBuffer::kSpansMax);
  EXPECT_EQ(taken.dropped, 3);
  EXPECT_EQ(buffer.Take().dropped, 0);
}

}  // namespace
}  // namespace ranklab::worker
