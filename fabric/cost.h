// Closed forms under model M2 of the alpha-beta model (alpha is latency only and does not hold the
// ports), and the bucket recursion. What a shaped run is compared with.
// Source: Patarasuk and Yuan, JPDC 69(2), 2009 for
// the ring; Li et al., OSDI 2014 for the parameter server's port limit.
#pragma once

#include <span>
#include <vector>

#include "core/units.h"
#include "fabric/link_model.h"

namespace ranklab::fabric {

// 2(P-1)(alpha + (S/P) beta), 0 for one rank.
Nanos RingAllReduceTime(const LinkSpec& port, int ranks, Bytes size);
// (P-1)(alpha + (S/P) beta).
Nanos RingHalfTime(const LinkSpec& port, int ranks, Bytes size);

// One direction of a parameter server: alpha + max(N, V) (S/V) beta. Push and pull are one each.
Nanos ParameterServerHalfTime(const LinkSpec& port, int workers, int servers, Bytes size);

struct BucketTiming {
  Nanos ready{};          // after the start of the step, non-decreasing
  Nanos communication{};
};
struct Overlap {
  Nanos last_ends{};
  Nanos exposed{};  // max(0, last_ends - last ready)
};

// e_i = max(e_(i-1), r_i) + c_i on one communication stream.
Overlap PlayBuckets(std::span<const BucketTiming> buckets);

}  // namespace ranklab::fabric
