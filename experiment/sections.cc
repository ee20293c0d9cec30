#include "experiment/sections.h"

#include <array>
#include <vector>

#include "collectives/schedule/catalog.h"
#include "core/status.h"
#include "experiment/fields.h"
#include "experiment/scenario_reader.h"
#include "fabric/device_model.h"
#include "fabric/presets.h"

namespace ranklab::experiment {
namespace {

constexpr int kMostWorkers = 1 << 20;  // a simulation's
// Five heartbeats (coordinator/member_session.h).
constexpr Nanos kLeastSuspectAfter = std::chrono::seconds(1);
constexpr std::array<std::string_view, 3> kFloatingDTypes = {"fp32", "bf16", "fp16"};

absl::Status ReadModel(Fields fields, LabSpec& spec) {
  std::string kind = "mlp";
  fields.Require("kind", "one of mlp, gpt");
  fields.OneOf("kind", std::array<std::string_view, 2>{"mlp", "gpt"}, kind);
  if (kind == "mlp") {
    MlpSpec mlp;
    fields.Require("layers", "a list of widths, inputs first, such as [64, 512, 10]");
    fields.Widths("layers", mlp.layers);
    if (fields.Has("layers") && (mlp.layers.size() < 2 || mlp.layers.size() > 64)) {
      fields.Fail("layers", "2 to 64 widths, inputs first, such as [64, 512, 10]");
    }
    for (const std::string_view key : {"hidden", "heads", "context", "tied"}) {
      fields.OnlyFor(key, false, "gpt", kind);
    }
    spec.model = std::move(mlp);
    return fields.Finish();
  }
  GptSpec gpt;
  for (const auto& [key, value] :
       {std::pair{"layers", &gpt.layers}, std::pair{"hidden", &gpt.hidden},
        std::pair{"heads", &gpt.heads}, std::pair{"context", &gpt.context}}) {
    fields.Require(key, "a whole number, at least 1");
    fields.Integer(key, {.least = 1, .most = 1 << 20}, *value);
  }
  if (gpt.heads > 0 && gpt.hidden % gpt.heads != 0) {
    fields.Fail("heads", absl::StrFormat("a divisor of hidden (%d)", gpt.hidden));
  }
  fields.Flag("tied", gpt.tied);
  spec.model = gpt;
  return fields.Finish();
}

void ReadIdxFiles(Fields& fields, DataSpec& data) {
  const bool idx = data.kind == "idx";
  for (const auto& [key, value] :
       {std::pair{"images", &data.images}, std::pair{"labels", &data.labels},
        std::pair{"test_images", &data.test_images}, std::pair{"test_labels", &data.test_labels}}) {
    fields.OnlyFor(key, idx, "idx", data.kind);
    fields.Text(key, *value);
    if (idx) {
      fields.Require(key, "a file in IDX format, relative to the lab file");
    }
  }
}

// Bytes are tokens, so that a grammar may have as many.
void ReadTokens(Fields& fields, DataSpec& data) {
  const bool grammar = data.kind == "grammar";
  for (const std::string_view key : {"vocabulary", "branching", "shortest"}) {
    fields.OnlyFor(key, grammar, "grammar", data.kind);
  }
  fields.Integer("vocabulary", {.least = 2, .most = 256}, data.vocabulary);
  fields.Integer("branching", {.least = 2, .most = data.vocabulary}, data.branching);
  fields.Integer("shortest", {.least = 2, .most = 1 << 20}, data.shortest);
  fields.OnlyFor("file", data.kind == "text", "text", data.kind);
  fields.Text("file", data.file);
  if (data.kind == "text") {
    fields.Require("file", "any file, relative to the lab file; its bytes are tokens");
  }
}

absl::Status ReadData(Fields fields, DataSpec& data) {
  constexpr std::array<std::string_view, 5> kKinds = {"digits", "idx", "synthetic", "grammar",
                                                      "text"};
  fields.OneOf("kind", kKinds, data.kind);
  ReadIdxFiles(fields, data);
  ReadTokens(fields, data);
  const bool synthetic = data.kind == "synthetic";
  fields.OnlyFor("samples", synthetic || data.kind == "grammar", "synthetic or grammar", data.kind);
  for (const std::string_view key : {"inputs", "classes"}) {
    fields.OnlyFor(key, synthetic, "synthetic", data.kind);
  }
  fields.Integer("samples", {.least = 4, .most = 1 << 26}, data.samples);
  fields.Integer("inputs", {.least = 1, .most = 1 << 20}, data.inputs);
  fields.Integer("classes", {.least = 2, .most = 1 << 20}, data.classes);
  fields.Integer("split_seed", {}, data.split_seed);
  fields.Integer("loaders", {.least = 1, .most = 64}, data.loaders);
  fields.Integer("prefetch", {.least = 1, .most = 1024}, data.prefetch);
  return fields.Finish();
}

void ReadOptimizer(Fields& fields, TrainSpec& train) {
  fields.OneOf("optimizer", std::array<std::string_view, 3>{"sgd", "momentum", "adamw"},
               train.optimizer);
  fields.Number("momentum", {.least = 0, .most = 1}, train.momentum);
  // With 1 the bias correction 1 - beta^t would be 0, and divided by.
  constexpr NumberRange kBeta = {.least = 0, .most = 1, .open_end = true};
  fields.Number("beta1", kBeta, train.beta1);
  fields.Number("beta2", kBeta, train.beta2);
  fields.Number("epsilon", {.least = 0, .open = true}, train.epsilon);
  fields.Number("weight_decay", {.least = 0}, train.weight_decay);
  fields.Number("clip_norm", {.least = 0, .open = true}, train.clip_norm);
}

void ReadLearningRate(Fields& fields, int largest_batch, TrainSpec& train) {
  fields.Number("learning_rate", {.least = 0, .open = true}, train.learning_rate);
  fields.OneOf("scale_rate", std::array<std::string_view, 3>{"none", "linear", "sqrt"},
               train.scale_rate);
  fields.Integer("base_batch", {.least = 1, .most = largest_batch}, train.base_batch);
  fields.OneOf("schedule", std::array<std::string_view, 2>{"constant", "cosine"}, train.schedule);
  fields.Integer("ramp_steps", {.least = 0, .most = 1 << 30}, train.ramp_steps);
  fields.Number("final_rate", {.least = 0, .most = 1}, train.final_rate);
}

absl::Status ReadTrain(Fields fields, TrainSpec& train) {
  constexpr int kLargestBatch = 1 << 24;
  fields.Require("steps", "a whole number, at least 1");
  fields.Integer("steps", {.least = 1, .most = 1 << 30}, train.steps);
  fields.Integer("warmup_steps", {.least = 0, .most = 1 << 20}, train.warmup_steps);
  fields.Integer("global_batch", {.least = 1, .most = kLargestBatch}, train.global_batch);
  fields.Integer("batch_per_worker", {.least = 1, .most = kLargestBatch}, train.batch_per_worker);
  fields.Integer("accumulate", {.least = 1, .most = 1 << 20}, train.accumulate);
  fields.Flag("recompute", train.recompute);
  ReadOptimizer(fields, train);
  ReadLearningRate(fields, kLargestBatch, train);
  fields.OneOf("precision", kFloatingDTypes, train.precision);
  fields.Flag("trace", train.trace);
  return fields.Finish();
}

absl::Status ReadCluster(Fields fields, ClusterSpec& cluster) {
  const ConfigNode* workers = fields.Take("workers");
  if (workers != nullptr && workers->is_scalar() && workers->text == "all") {
    cluster.workers = 0;
  } else {
    if (workers != nullptr && workers->is_scalar() && workers->text == "0") {
      fields.Fail("workers", "0 is not a number of workers: at least 1, or all");
    }
    fields.Integer("workers", {.least = 1, .most = kMostWorkers}, cluster.workers);
  }
  fields.Integer("servers", {.least = 0, .most = 1 << 16}, cluster.servers);
  fields.OneOf("device", std::array<std::string_view, 3>{"auto", "cpu", "cuda"}, cluster.device);
  fields.Flag("shared_gpu", cluster.shared_gpu);
  fields.OneOf("on_loss", std::array<std::string_view, 2>{"stop", "continue"}, cluster.on_loss);
  fields.Size("memory_cap", cluster.memory_cap);
  fields.Duration("suspect_after", cluster.suspect_after);
  if (cluster.suspect_after < kLeastSuspectAfter) {
    fields.Fail("suspect_after",
                "at least 1s: a process is heard of every 200 ms, and later on a busy machine");
  }
  return fields.Finish();
}

absl::Status ReadCompute(Fields fields, ComputeSpec& compute) {
  std::vector<std::string_view> models = {"native"};
  for (const fabric::DeviceModel& model : fabric::DeviceModels()) {
    models.push_back(model.name);
  }
  fields.OneOf("model", models, compute.model);
  fields.Integer("threads", {.least = 1, .most = 1024}, compute.threads);
  fields.Duration("op_overhead", compute.op_overhead);
  return fields.Finish();
}

void ReadParameterServer(Fields& fields, ParameterServerSpec& ps) {
  const ConfigNode* staleness = fields.Take("staleness");
  if (staleness != nullptr && staleness->is_scalar() && staleness->text == "none") {
    ps.staleness_bound = ParameterServerSpec::kUnbounded;
  } else if (staleness != nullptr && !staleness->is_scalar()) {
    fields.Fail("staleness", "a number of steps, or none for no bound");
  } else {
    fields.Integer("staleness", {.least = 0, .most = 1 << 30}, ps.staleness_bound);
  }
  std::string order = "arrival";
  fields.OneOf("order", std::array<std::string_view, 2>{"arrival", "rank"}, order);
  ps.order = order == "rank" ? ReductionOrder::kRank : ReductionOrder::kArrival;
  if (ps.order == ReductionOrder::kRank && ps.staleness_bound > 0) {
    fields.Fail("order", "rank order needs staleness 0: only a synchronous step has all gradients");
  }
}

absl::Status ReadExchange(Fields fields, ExchangeSpec& exchange) {
  constexpr std::array<std::string_view, 4> kKinds = {"ps", "collective", "nccl", "none"};
  std::string kind = "collective";
  fields.OneOf("kind", kKinds, kind);
  fields.OnlyFor("staleness", kind == "ps", "ps", kind);
  fields.OnlyFor("order", kind == "ps", "ps", kind);
  fields.OnlyFor("algorithm", kind == "collective", "collective", kind);
  if (kind == "ps") {
    ParameterServerSpec ps;
    ReadParameterServer(fields, ps);
    exchange.kind = ps;
  } else if (kind == "collective") {
    CollectiveSpec collective;
    fields.OneOf("algorithm", CollectiveAlgorithms(), collective.algorithm);
    exchange.kind = std::move(collective);
  } else if (kind == "nccl") {
    exchange.kind = NcclSpec{};
  } else {
    exchange.kind = NoExchange{};
  }
  fields.OneOf("transport", std::array<std::string_view, 4>{"auto", "tcp", "grpc", "shm"},
               exchange.transport);
  fields.OneOf("wire_dtype", kFloatingDTypes, exchange.wire_dtype);
  fields.Size("bucket", exchange.bucket);
  fields.Size("first_bucket", exchange.first_bucket);
  fields.Flag("overlap", exchange.overlap);
  fields.Flag("barrier", exchange.barrier);
  if (exchange.barrier && exchange.overlap) {
    fields.Fail("barrier", "false, or true with overlap: false (workers meet before the exchange)");
  }
  fields.Duration("timeout", exchange.timeout);
  return fields.Finish();
}

absl::Status ReadFabric(Fields fields, FabricSpec& fabric) {
  std::vector<std::string_view> presets = {"native"};
  for (const fabric::Preset& preset : fabric::Presets()) {
    presets.push_back(preset.name);
  }
  fields.OneOf("preset", presets, fabric.preset);
  const ConfigNode* scale = fields.Take("time_scale");
  if (scale != nullptr && scale->is_scalar() && scale->text == "auto") {
    fabric.time_scale = 0;
  } else {
    fields.Number("time_scale", {.least = 0, .most = 1e9, .open = true}, fabric.time_scale);
  }
  fields.Number("headroom", {.least = 1, .most = 1000}, fabric.headroom);
  return fields.Finish();
}

absl::Status ReadSeed(const ConfigSource& source, const ConfigNode& root, std::uint64_t& seed) {
  ConfigNode only{.kind = ConfigNode::Kind::kMap};
  if (const ConfigNode* node = root.Find("seed")) {
    only.Set("seed", *node);
  }
  Fields fields(source, &only, "");
  fields.Integer("seed", {}, seed);
  return fields.Finish();
}

}  // namespace

std::vector<std::string_view> CollectiveAlgorithms() {
  std::vector<std::string_view> names = {"auto"};
  for (const collectives::CatalogEntry& entry : collectives::Catalog()) {
    if (entry.collective == collectives::Collective::kAllReduce) {
      names.push_back(entry.name);
    }
  }
  return names;
}

absl::StatusOr<LabSpec> ReadSpec(const ConfigSource& source, const ConfigNode& root) {
  const auto section = [&](const char* name) { return Fields(source, root.Find(name), name); };
  LabSpec spec;
  RETURN_IF_ERROR(ReadSeed(source, root, spec.seed));
  RETURN_IF_ERROR(ReadModel(section("model"), spec));
  RETURN_IF_ERROR(ReadData(section("data"), spec.data));
  if (const auto* gpt = std::get_if<GptSpec>(&spec.model)) {
    spec.data.context = gpt->context;
  }
  RETURN_IF_ERROR(ReadTrain(section("train"), spec.train));
  RETURN_IF_ERROR(ReadCluster(section("cluster"), spec.cluster));
  RETURN_IF_ERROR(ReadCompute(section("compute"), spec.compute));
  RETURN_IF_ERROR(ReadExchange(section("exchange"), spec.exchange));
  RETURN_IF_ERROR(ReadFabric(section("fabric"), spec.fabric));
  RETURN_IF_ERROR(ReadScenario(source, root.Find("scenario"), spec.scenario));
  spec.scenario.seed = spec.seed;
  if (spec.fabric.native() && spec.compute.native()) {
    spec.fabric.time_scale = 1;  // nothing is modelled: there is nothing to stretch
  }
  RETURN_IF_ERROR(CheckSpec(source, root, spec));
  return spec;
}

}  // namespace ranklab::experiment
