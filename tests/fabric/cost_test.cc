// The expected values were computed apart from this code: closed forms confirmed by an event replay
// of the transfer graph (M2, gamma = 0), and the bucket recursion by hand.
#include "fabric/cost.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "core/random.h"

namespace ranklab::fabric {
namespace {

using std::chrono::milliseconds;

// alpha = 5 us, beta = 1e-10 s/B, S = 64 MB: the reference's default inputs.
constexpr LinkSpec kPort{.alpha = Nanos(5000), .bandwidth = {1e10}};
constexpr Bytes kSize = 64'000'000;

// 2(p-1) x 5 us + 2((p-1)/p) x 6.4 ms.
TEST(RingAllReduceTime, MatchesTheClosedForm) {
  EXPECT_EQ(RingAllReduceTime(kPort, 1, kSize), Nanos(0));
  EXPECT_EQ(RingAllReduceTime(kPort, 2, kSize), Nanos(6'410'000));
  EXPECT_EQ(RingAllReduceTime(kPort, 3, kSize), Nanos(8'553'333));
  EXPECT_EQ(RingAllReduceTime(kPort, 8, kSize), Nanos(11'270'000));
  EXPECT_EQ(RingAllReduceTime(kPort, 16, kSize), Nanos(12'150'000));
}

TEST(RingHalfTime, IsHalfAnAllReduce) {
  for (const int ranks : {1, 2, 3, 5, 8, 16}) {
    const Nanos whole = RingAllReduceTime(kPort, ranks, kSize);
    EXPECT_NEAR(static_cast<double>((2 * RingHalfTime(kPort, ranks, kSize)).count()),
                static_cast<double>(whole.count()), 1);
  }
}

// check value ps_sync_m2_n8_v2: N = 8, V = 2, push and pull together 0.05121 s.
TEST(ParameterServerHalfTime, MatchesTheCheckValue) {
  EXPECT_EQ(2 * ParameterServerHalfTime(kPort, 8, 2, kSize), Nanos(51'210'000));
}

// With as many servers as workers or more, each worker's own port limits: alpha + S beta.
TEST(ParameterServerHalfTime, IsLimitedByTheWorkersPortWhenServersAreMany) {
  EXPECT_EQ(ParameterServerHalfTime(kPort, 4, 4, kSize), Nanos(6'405'000));
  EXPECT_EQ(ParameterServerHalfTime(kPort, 2, 8, kSize), Nanos(6'405'000));
  EXPECT_EQ(ParameterServerHalfTime(kPort, 4, 1, kSize), Nanos(25'605'000));
}

TEST(ClosedForms, DoNotOverflow) {
  EXPECT_EQ(RingAllReduceTime({.bandwidth = {1e-3}}, 16, 1'000'000'000'000), Nanos::max());
}

// check values overlap_last_bucket_end and overlap_exposed: ready 2 4 6 8 ms, 3 ms each.
TEST(PlayBuckets, MatchesTheCheckValue) {
  const std::array<BucketTiming, 4> buckets = {{{milliseconds(2), milliseconds(3)},
                                                {milliseconds(4), milliseconds(3)},
                                                {milliseconds(6), milliseconds(3)},
                                                {milliseconds(8), milliseconds(3)}}};
  const Overlap overlap = PlayBuckets(buckets);
  EXPECT_EQ(overlap.last_ends, milliseconds(14));
  EXPECT_EQ(overlap.exposed, milliseconds(6));
}

TEST(PlayBuckets, OfNothingIsNothing) {
  const Overlap overlap = PlayBuckets({});
  EXPECT_EQ(overlap.last_ends, Nanos(0));
  EXPECT_EQ(overlap.exposed, Nanos(0));
}

TEST(PlayBuckets, OneBucketIsExposedAsAWhole) {
  const std::array<BucketTiming, 1> bucket = {{{milliseconds(8), milliseconds(3)}}};
  EXPECT_EQ(PlayBuckets(bucket).exposed, milliseconds(3));
}

// max(r_last + c_last, r_1 + sum c) <= e_last <= r_last + sum c, on random buckets.
TEST(PlayBuckets, StaysWithinItsBounds) {
  Random random(20241);
  for (int round = 0; round < 2000; ++round) {
    std::vector<BucketTiming> buckets(1 + random.Below(9));
    Nanos ready{};
    Nanos sum{};
    for (BucketTiming& bucket : buckets) {
      ready += Nanos(static_cast<std::int64_t>(random.Below(1000)));
      bucket = {ready, Nanos(static_cast<std::int64_t>(random.Below(1000)))};
      sum += bucket.communication;
    }
    const Nanos ends = PlayBuckets(buckets).last_ends;
    EXPECT_GE(ends, std::max(ready + buckets.back().communication, buckets.front().ready + sum));
    EXPECT_LE(ends, ready + sum);
  }
}

}  // namespace
}  // namespace ranklab::fabric
