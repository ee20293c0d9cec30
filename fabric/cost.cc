#include "fabric/cost.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "fabric/collective_cost.h"

namespace ranklab::fabric {

Nanos ToNanos(double seconds) {
  const double nanos = seconds * 1e9;
  return nanos < 0x1p63 ? Nanos(std::llround(nanos)) : Nanos::max();
}

Nanos RingAllReduceTime(const LinkSpec& port, int ranks, Bytes size) {
  return ToNanos(
      *RingAllReduceCost(LiveCostModel(port), {.ranks = ranks, .size = static_cast<double>(size)}));
}

Nanos RingHalfTime(const LinkSpec& port, int ranks, Bytes size) {
  return ToNanos(
      *RingAllGatherCost(LiveCostModel(port), {.ranks = ranks, .size = static_cast<double>(size)}));
}

Nanos ParameterServerHalfTime(const LinkSpec& port, int workers, int servers, Bytes size) {
  RANKLAB_CHECK(workers >= 1 && servers >= 1 && size >= 0);
  const CostModel model = LiveCostModel(port);
  const double part = static_cast<double>(size) / servers;
  return ToNanos(model.alpha + std::max(workers, servers) * part * model.beta);
}

Overlap PlayBuckets(std::span<const BucketTiming> buckets) {
  Overlap overlap;
  Nanos last_ready{};
  for (const BucketTiming& bucket : buckets) {
    RANKLAB_CHECK(bucket.ready >= last_ready, "buckets are ready in order");
    last_ready = bucket.ready;
    overlap.last_ends = std::max(overlap.last_ends, bucket.ready) + bucket.communication;
  }
  overlap.exposed = std::max(Nanos(0), overlap.last_ends - last_ready);
  return overlap;
}

}  // namespace ranklab::fabric
