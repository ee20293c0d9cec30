// What a step waits for, live: three layers with known times and three buckets with known times on
// a shaped ring of two, against the bucket recursion e_i = max(e_(i-1), r_i) + c_i done by hand.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include <gtest/gtest.h>

#include "tests/training/live_ring.h"

namespace ranklab::worker {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// Layers of 4160, 4160 and 8320 parameters; an operation takes 15 ms of modelled time, whatever
// else it is small against. Forward 1, 1 and 2 operations, backward 1, 2 and 2. A bucket a layer.
LiveRingOptions ThreeLayers(bool overlap, double time_scale) {
  LiveRingOptions options;
  options.spec.model = experiment::MlpSpec{{64, 64, 64, 128}};
  options.spec.data.kind = "synthetic";
  options.spec.data.classes = 128;
  options.spec.train.steps = 6;
  options.spec.train.batch_per_worker = 4;
  options.spec.cluster.workers = 2;
  options.spec.compute.model = "a100";
  options.spec.compute.op_overhead = milliseconds(15);
  options.spec.exchange.overlap = overlap;
  options.spec.exchange.bucket = options.spec.exchange.first_bucket = 1;
  options.time_scale = time_scale;
  options.port.alpha = Nanos(std::llround(25e6 * time_scale));
  options.port.bandwidth.bytes_per_second = 1e6 / time_scale;
  options.claimed = options.port;
  return options;
}

// Ready, in ms from the start of the step, counted in operations of 15 ms:
//   layer 2 after 4 forward and 2 backward: 90; layer 1: 120; layer 0: 135.
// A ring of two takes 2 (alpha + S / 2B). Of 4 (8320 + 2), 4 x 4160 and 4 x 4160 bytes at 1 MB/s:
//   2 (25 + 16.644) = 83.288; 2 (25 + 8.32) = 66.64; 66.64.
// Ends: 90 + 83.288 = 173.288; + 66.64 = 239.928; + 66.64 = 306.568.
constexpr double kExposed = 306.568 - 135;
// All three after the last is ready:
constexpr double kExposedWithoutOverlap = 83.288 + 66.64 + 66.64;
// Without one of the buckets it would be 118.3, 104.9 or 104.9: each more than three times this
// tolerance away, as is the other of the two above.
constexpr double kTolerance = 14;

// In modelled milliseconds: the median over ranks and steps but the first.
double MedianExposed(bool overlap, double time_scale) {
  std::vector<double> exposed;
  for (const RankOutcome& outcome : RunLiveRing(ThreeLayers(overlap, time_scale))) {
    for (const experiment::StepRecord& step : outcome.steps) {
      if (step.step > 1) {
        exposed.push_back(static_cast<double>(step.exposed.count()) * 1e-6 / time_scale);
      }
    }
  }
  EXPECT_EQ(exposed.size(), 10U);
  std::sort(exposed.begin(), exposed.end());
  return exposed.empty() ? 0 : exposed[exposed.size() / 2];
}

// A machine too busy for one scale is asked again at a slower one, where what it adds weighs less.
void ExpectExposed(bool overlap, double expected) {
  double found = 0;
  for (const double time_scale : {1.0, 4.0, 16.0}) {
    found = MedianExposed(overlap, time_scale);
    std::printf("scale %g: exposed %.1f ms, by hand %.1f ms\n", time_scale, found, expected);
    if (std::abs(found - expected) <= kTolerance) {
      return;
    }
  }
  ADD_FAILURE() << "exposed " << found << " ms where the recursion says " << expected << " ms";
}

TEST(LiveOverlap, ExposesWhatTheBucketRecursionSays) { ExpectExposed(true, kExposed); }

TEST(LiveOverlap, ExposesEveryBucketWithoutOverlap) {
  ExpectExposed(false, kExposedWithoutOverlap);
}

}  // namespace
}  // namespace ranklab::worker
