#include "worker/network_account.h"

#include <algorithm>
#include <variant>

#include "collectives/schedule/catalog.h"
#include "core/overloaded.h"
#include "core/status.h"
#include "experiment/survival.h"
#include "worker/precision.h"

namespace ranklab::worker {
namespace {

constexpr Bytes kFloat = 4;

// Elements that `rank` receives in one run of `schedule` on a buffer of `elements`.
std::int64_t ElementsReceived(const collectives::Schedule& schedule, Rank rank,
                              std::int64_t elements) {
  std::int64_t received = 0;
  for (const collectives::Op& op : schedule.ops_of(rank)) {
    if (collectives::IsReceive(op.kind)) {
      received += collectives::ElementsIn(schedule, rank, elements, op.chunk, op.count);
    }
  }
  return received;
}

}  // namespace

absl::StatusOr<Bytes> ClaimedByWorker(const experiment::LabSpec& spec, Rank rank,
                                      std::span<const Bucket> buckets, Step steps) {
  if (std::holds_alternative<experiment::ParameterServerSpec>(spec.exchange.kind)) {
    return buckets.front().end * kFloat * (steps + 1);
  }
  const auto* collective = std::get_if<experiment::CollectiveSpec>(&spec.exchange.kind);
  if (collective == nullptr) {
    return 0;
  }
  ASSIGN_OR_RETURN(
      const collectives::Schedule schedule,
      collectives::BuildNamed(collective->resolved(), collectives::Collective::kAllReduce,
                              {.group_size = spec.cluster.workers, .chunks_per_rank = 1}));
  // The weight is float32: in one buffer with the first bucket, or a collective of its own.
  const bool together = buckets.front().sent.dtype == compute::DType::kFloat32;
  Bytes received = together ? 0 : ElementsReceived(schedule, rank, kGradientTail) * kFloat;
  for (const Bucket& bucket : buckets) {
    const std::int64_t tail = together && bucket.index == 0 ? kGradientTail : 0;
    received += ElementsReceived(schedule, rank, bucket.end - bucket.begin + tail) *
                SizeOf(bucket.sent.dtype);
  }
  return received * steps;
}

Bytes ClaimedByServer(const experiment::LabSpec& spec, std::int64_t elements,
                      std::int64_t updates) {
  // Synchronously one update is a step of every worker, asynchronously of one.
  const std::int64_t pushes = updates * (spec.asynchronous() ? 1 : spec.cluster.workers);
  return elements * SizeOf(WireOf(spec)) * pushes;
}

bool IsHeldToAccount(const experiment::LabSpec& spec) {
  const auto& injections = spec.scenario.injections;
  // What replicas take is not in the claim.
  return !spec.fabric.native() && !experiment::Replicates(spec) &&
         std::none_of(injections.begin(), injections.end(), [](const auto& injection) {
           return std::holds_alternative<experiment::ShapeLink>(injection.effect);
         });
}

fabric::NetworkVerdict Judge(const fabric::LinkSpec& port, Bytes claimed,
                             const Network::Report& report) {
  fabric::NetworkFigures figures;
  figures.bandwidth_median = report.shape.achieved_bandwidth_median;
  figures.bandwidth_samples = report.shape.bandwidth_samples;
  figures.latency_median = report.shape.latency_median;
  figures.latency_samples = report.shape.latency_samples;
  for (const auto& [peer, counters] : report.connections) {
    figures.body_received += counters.body_received;
  }
  return fabric::HoldToAccount({.port = port, .body_received = claimed}, figures);
}

}  // namespace ranklab::worker
