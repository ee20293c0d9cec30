#include "fabric/cost.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace ranklab::fabric {
namespace {

// count (alpha + bytes beta); the bytes of a part need not be whole.
Nanos Steps(const LinkSpec& port, double count, double bytes) {
  const double alpha = static_cast<double>(port.alpha.count());
  const double nanos = count * (alpha + bytes / port.bandwidth.bytes_per_second * 1e9);
  return nanos < 0x1p63 ? Nanos(std::llround(nanos)) : Nanos::max();
}

}  // namespace

Nanos RingAllReduceTime(const LinkSpec& port, int ranks, Bytes size) {
  RANKLAB_CHECK(ranks >= 1 && size >= 0);
  return Steps(port, 2.0 * (ranks - 1), static_cast<double>(size) / ranks);
}

Nanos RingHalfTime(const LinkSpec& port, int ranks, Bytes size) {
  RANKLAB_CHECK(ranks >= 1 && size >= 0);
  return Steps(port, ranks - 1, static_cast<double>(size) / ranks);
}

Nanos ParameterServerHalfTime(const LinkSpec& port, int workers, int servers, Bytes size) {
  RANKLAB_CHECK(workers >= 1 && servers >= 1 && size >= 0);
  const double part = static_cast<double>(size) / servers;
  return Steps(port, 1, std::max(workers, servers) * part);
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
