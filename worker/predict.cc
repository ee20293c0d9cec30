#include "worker/predict.h"

#include <algorithm>
#include <variant>

#include "collectives/schedule/catalog.h"
#include "core/check.h"
#include "core/overloaded.h"
#include "core/seconds.h"
#include "core/status.h"
#include "experiment/survival.h"
#include "fabric/device_model.h"
#include "fabric/presets.h"
#include "worker/lab_optimizer.h"
#include "worker/precision.h"

namespace ranklab::worker {
namespace {

using experiment::CollectiveSpec;
using experiment::LabSpec;
using experiment::NoExchange;
using experiment::ParameterServerSpec;

constexpr Bytes kFloat = 4;
constexpr Bytes kWeightSize = kGradientTail * kFloat;

// Of a bucket's gradients on the wire.
Bytes SizeOf(const Bucket& bucket) {
  return (bucket.end - bucket.begin) * SizeOf(bucket.sent.dtype);
}

// When each bucket's last gradient is there, after the start of the step.
std::vector<Nanos> ReadyTimes(const LayerTimes& times, std::span<const Bucket> buckets) {
  Nanos now{};
  for (const Nanos forward : times.forward) {
    now += forward;
  }
  std::vector<Nanos> ready;
  for (auto layer = static_cast<int>(times.backward.size()) - 1; layer >= 0; --layer) {
    now += times.backward[static_cast<std::size_t>(layer)];
    if (ready.size() < buckets.size() && buckets[ready.size()].last_layer == layer) {
      ready.push_back(now);
    }
  }
  return ready;
}

absl::StatusOr<Nanos> AllReduceTime(const CollectiveSpec& spec, const fabric::LinkSpec& port,
                                    int workers, Bytes size) {
  const auto* entry =
      collectives::FindAlgorithm(spec.resolved(), collectives::Collective::kAllReduce);
  RANKLAB_CHECK(entry != nullptr, "the lab reader knows the catalog: %s", spec.algorithm);
  const fabric::Cost seconds = collectives::PredictSeconds(
      *entry, fabric::LiveCostModel(port), {.group_size = workers}, static_cast<double>(size));
  if (!seconds) {
    return Unimplemented("%s over %d workers has no closed form", entry->name, workers);
  }
  return fabric::ToNanos(*seconds);
}

}  // namespace

absl::StatusOr<fabric::Overlap> PredictExchange(const LabSpec& spec, const fabric::LinkSpec& port,
                                                std::span<const Bucket> buckets,
                                                std::span<const Nanos> ready) {
  RANKLAB_CHECK(buckets.size() == ready.size() && !buckets.empty());
  const auto begins = [&](std::size_t i) {
    return spec.exchange.overlap ? ready[i] : ready.back();
  };
  const int workers = spec.cluster.workers;
  const int servers = spec.cluster.servers;
  std::vector<fabric::BucketTiming> timings;
  if (const auto* collective = std::get_if<CollectiveSpec>(&spec.exchange.kind)) {
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      const Bytes size = SizeOf(buckets[i]);
      // The weight travels with the first bucket, or before it where that is narrower.
      const bool together = i == 0 && buckets[i].sent.dtype == compute::DType::kFloat32;
      ASSIGN_OR_RETURN(Nanos time, AllReduceTime(*collective, port, workers,
                                                 together ? size + kWeightSize : size));
      if (i == 0 && !together) {
        ASSIGN_OR_RETURN(const Nanos weight,
                         AllReduceTime(*collective, port, workers, kWeightSize));
        time += weight;
      }
      timings.push_back({begins(i), time});
    }
    return fabric::PlayBuckets(timings);
  }
  // Pushes stream behind one another through the port, so alpha counts once, after the last one.
  Bytes total = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const Nanos half = fabric::ParameterServerHalfTime(port, workers, servers, SizeOf(buckets[i]));
    timings.push_back({begins(i), half - port.alpha});
    total += (buckets[i].end - buckets[i].begin) * kFloat;  // parameters come back in float32
  }
  fabric::Overlap overlap = fabric::PlayBuckets(timings);
  const Nanos after = port.alpha + fabric::ParameterServerHalfTime(port, workers, servers, total);
  overlap.last_ends += after;
  overlap.exposed += after;
  return overlap;
}

absl::StatusOr<StepPrediction> PredictStep(const LabSpec& spec, Model& model) {
  const bool exchanges = !std::holds_alternative<NoExchange>(spec.exchange.kind);
  if (spec.compute.native() || (exchanges && spec.fabric.native())) {
    return Unimplemented("a native step has no modelled time");
  }
  if (spec.asynchronous() || experiment::Replicates(spec) || !spec.scenario.injections.empty()) {
    return Unimplemented("an asynchronous or disturbed step has no closed form");
  }
  ASSIGN_OR_RETURN(const fabric::DeviceModel device, fabric::FindDeviceModel(spec.compute.model));
  // The largest share decides: everybody waits for it. Micro-batches before the last only compute.
  const std::int64_t samples = spec.BatchOf(0);
  const int micro_batches = spec.train.accumulate;
  const std::int64_t micro = (samples + micro_batches - 1) / micro_batches;
  const LayerTimes times =
      ModelledTimes(model, device, spec.compute.op_overhead,
                    {.samples = micro, .storage = StorageOf(spec), .update = WorkerUpdateOf(spec)});
  const std::vector<Bucket> buckets = CutBuckets(model, BucketsOf(spec));
  Nanos passes{};
  for (std::size_t layer = 0; layer < times.forward.size(); ++layer) {
    passes += times.forward[layer] + times.backward[layer];
  }
  StepPrediction prediction;
  prediction.compute = SecondsOf(passes * micro_batches + times.optimizer);
  if (exchanges) {
    ASSIGN_OR_RETURN(const fabric::Preset preset, fabric::FindPreset(spec.fabric.preset));
    const std::vector<Nanos> ready = ReadyTimes(times, buckets);
    ASSIGN_OR_RETURN(const fabric::Overlap overlap,
                     PredictExchange(spec, preset.port, buckets, ready));
    prediction.exposed = SecondsOf(overlap.exposed);
  }
  prediction.step = prediction.compute + prediction.exposed;
  return prediction;
}

absl::StatusOr<StepPrediction> PredictStep(const LabSpec& spec) {
  compute::CpuDevice device({.threads = 1});
  ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, MakeModel(spec, device, /*max_samples=*/1));
  return PredictStep(spec, *model);
}

absl::StatusOr<StepPrediction> EstimateStep(const LabSpec& spec) {
  absl::StatusOr<StepPrediction> predicted = PredictStep(spec);
  if (predicted.ok() || !std::holds_alternative<CollectiveSpec>(spec.exchange.kind)) {
    return predicted;
  }
  LabSpec with_ring = spec;
  with_ring.exchange.kind = CollectiveSpec{.algorithm = "ring"};
  return PredictStep(with_ring);
}

namespace {

// The exchange of all buckets together, ready at once, over such ports.
absl::StatusOr<double> ExchangeSeconds(const LabSpec& spec, const fabric::LinkSpec& port) {
  compute::CpuDevice device({.threads = 1});
  ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, MakeModel(spec, device, /*max_samples=*/1));
  const std::vector<Bucket> buckets = CutBuckets(*model, BucketsOf(spec));
  const std::vector<Nanos> ready(buckets.size());
  ASSIGN_OR_RETURN(const fabric::Overlap overlap, PredictExchange(spec, port, buckets, ready));
  return SecondsOf(overlap.exposed);
}

absl::StatusOr<fabric::LinkSpec> UndisturbedPort(const LabSpec& spec) {
  if (spec.fabric.native() || spec.asynchronous() || experiment::Replicates(spec) ||
      !spec.scenario.injections.empty() || std::holds_alternative<NoExchange>(spec.exchange.kind)) {
    return Unimplemented("only an undisturbed synchronous exchange on a modelled fabric has one");
  }
  ASSIGN_OR_RETURN(const fabric::Preset preset, fabric::FindPreset(spec.fabric.preset));
  return preset.port;
}

}  // namespace

absl::StatusOr<double> PredictExposed(const LabSpec& spec) {
  if (spec.exchange.overlap) {
    ASSIGN_OR_RETURN(const StepPrediction prediction, PredictStep(spec));
    return prediction.exposed;
  }
  ASSIGN_OR_RETURN(const fabric::LinkSpec port, UndisturbedPort(spec));
  return ExchangeSeconds(spec, port);
}

absl::StatusOr<double> PredictLatencyShare(const LabSpec& spec) {
  ASSIGN_OR_RETURN(fabric::LinkSpec port, UndisturbedPort(spec));
  ASSIGN_OR_RETURN(const double whole, ExchangeSeconds(spec, port));
  port.alpha = Nanos::zero();
  ASSIGN_OR_RETURN(const double without, ExchangeSeconds(spec, port));
  return whole > 0 ? 1 - without / whole : 0;
}

}  // namespace ranklab::worker
