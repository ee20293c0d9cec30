#include "worker/server_setup.h"

#include <variant>

#include "worker/precision.h"

namespace ranklab::worker {

ps::ShardOptions ShardOptionsOf(const experiment::LabSpec& spec, Rank server, ps::KeyRange range) {
  const auto& exchange = std::get<experiment::ParameterServerSpec>(spec.exchange.kind);
  return {
      .range = range,
      .worker_count = spec.cluster.workers,
      .bound = {.steps = exchange.staleness_bound},
      .order = exchange.order == experiment::ReductionOrder::kRank ? ps::Order::kRank
                                                                   : ps::Order::kArrival,
      .wire = WireOf(spec),
      .first_answered = static_cast<Rank>(server * spec.cluster.workers / spec.cluster.servers)};
}

}  // namespace ranklab::worker
