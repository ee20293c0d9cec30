// Closed forms under model M2 of the alpha-beta model (alpha is latency only and does not hold the
// ports), and the bucket recursion: what a shaped run is compared with; collective_cost.h has those
// of the other collectives. `port` is a rank's, each direction; jitter and loss are not in the
// formulas. P ranks, S bytes, beta = 1 / bandwidth. Sources: Patarasuk and Yuan, JPDC 69(2), 2009
// for the ring; Li et al., OSDI 2014 for the parameter server's port limit.
#pragma once

#include <span>

#include "core/units.h"
#include "fabric/link_model.h"

namespace ranklab::fabric {

// To the nearest nanosecond; saturates at Nanos::max(). Requires: seconds >= 0.
Nanos ToNanos(double seconds);

// 2(P-1)(alpha + (S/P) beta); 0 for one rank. Requires: ranks >= 1, size >= 0 (also below).
Nanos RingAllReduceTime(const LinkSpec& port, int ranks, Bytes size);
// (P-1)(alpha + (S/P) beta): a reduce-scatter or an all-gather.
Nanos RingHalfTime(const LinkSpec& port, int ranks, Bytes size);

// One direction between N workers and V servers, each worker with all S bytes in V equal parts and
// beginning at another server: alpha + max(N, V) (S/V) beta. Push and pull are one each.
// Requires: workers >= 1, servers >= 1.
Nanos ParameterServerHalfTime(const LinkSpec& port, int workers, int servers, Bytes size);

struct BucketTiming {
  Nanos ready{};  // after the start of the step, non-decreasing
  Nanos communication{};
};
struct Overlap {
  Nanos last_ends{};
  Nanos exposed{};  // max(0, last_ends - last ready)
};

// e_i = max(e_(i-1), r_i) + c_i on one communication stream. Source: Li et al., "PyTorch
// Distributed", VLDB 13(12), 2020. Nothing for no buckets.
Overlap PlayBuckets(std::span<const BucketTiming> buckets);

}  // namespace ranklab::fabric
