#include "collectives/schedule/bandwidth.h"

#include <chrono>

#include "core/check.h"

namespace ranklab::collectives {

Bandwidth AlgBandwidth(Bytes size, Nanos time) {
  RANKLAB_CHECK(time > Nanos::zero());
  return {static_cast<double>(size) / std::chrono::duration<double>(time).count()};
}

Bandwidth BusBandwidth(Collective collective, int world_size, Bytes size, Nanos time) {
  RANKLAB_CHECK(world_size >= 1);
  const double ranks = world_size;
  const double algbw = AlgBandwidth(size, time).bytes_per_second;
  switch (collective) {
    case Collective::kAllReduce:
      return {algbw * 2.0 * (ranks - 1.0) / ranks};
    case Collective::kReduceScatter:
    case Collective::kAllGather:
    case Collective::kAllToAll:
    case Collective::kAllToAllV:
    case Collective::kGather:
    case Collective::kScatter:
      return {algbw * (ranks - 1.0) / ranks};
    case Collective::kBroadcast:
    case Collective::kReduce:
      return {algbw};
    case Collective::kBarrier:
      return {0.0};
  }
  return {0.0};
}

}  // namespace ranklab::collectives
