// What no section of a lab file can check alone.
#include <algorithm>
#include <string>
#include <variant>

#include "core/overloaded.h"
#include "core/status.h"
#include "experiment/fields.h"
#include "experiment/sections.h"

namespace ranklab::experiment {
namespace {

struct Checked {
  const ConfigSource& source;
  const ConfigNode& root;
  const LabSpec& spec;

  absl::Status Refuse(std::string_view path, std::string_view what) const {
    return Complain(source, Locate(root, path), what);
  }
};

absl::Status CheckBatch(const Checked& lab) {
  const TrainSpec& train = lab.spec.train;
  const int workers = lab.spec.cluster.workers;
  if (train.global_batch > 0 && train.batch_per_worker > 0) {
    return lab.Refuse("train.batch_per_worker",
                      "train gives global_batch and batch_per_worker; one of the two");
  }
  if (train.global_batch == 0 && train.batch_per_worker == 0) {
    return lab.Refuse("train",
                      "train gives no batch; global_batch (of all workers together) or "
                      "batch_per_worker");
  }
  if (train.global_batch > 0 && workers == 0) {
    return lab.Refuse("train.global_batch",
                      "train.global_batch needs a number of workers; with cluster.workers all, "
                      "give batch_per_worker");
  }
  if (train.global_batch > 0 && train.global_batch < workers) {
    return lab.Refuse("train.global_batch",
                      absl::StrFormat("train.global_batch is %d for %d workers; at least one "
                                      "sample a worker",
                                      train.global_batch, workers));
  }
  const int least = train.global_batch > 0 ? train.global_batch / workers : train.batch_per_worker;
  if (train.accumulate > least) {
    return lab.Refuse("train.accumulate",
                      absl::StrFormat("train.accumulate is %d, but a worker has %d samples a step; "
                                      "at most one micro-batch a sample",
                                      train.accumulate, least));
  }
  if (train.steps <= train.warmup_steps) {
    return lab.Refuse("train.steps",
                      absl::StrFormat("train.steps is %d and train.warmup_steps %d; no step is "
                                      "left to count, at least %d steps",
                                      train.steps, train.warmup_steps, train.warmup_steps + 1));
  }
  return absl::OkStatus();
}

absl::Status CheckExchange(const Checked& lab) {
  const ClusterSpec& cluster = lab.spec.cluster;
  const auto& kind = lab.spec.exchange.kind;
  if (std::holds_alternative<ParameterServerSpec>(kind) && cluster.servers == 0) {
    return lab.Refuse("cluster.servers", "cluster.servers is 0; exchange.kind ps needs at least 1");
  }
  if (cluster.on_loss == "continue" &&
      (std::holds_alternative<CollectiveSpec>(kind) || std::holds_alternative<NcclSpec>(kind))) {
    return lab.Refuse("cluster.on_loss",
                      "cluster.on_loss continue needs exchange.kind ps: a collective has no step "
                      "without one of its ranks");
  }
  if (std::holds_alternative<NoExchange>(kind) && cluster.workers != 1) {
    return lab.Refuse(
        "cluster.workers",
        absl::StrFormat("cluster.workers is %s; exchange.kind none is one worker "
                        "alone",
                        cluster.workers == 0 ? "all" : std::to_string(cluster.workers)));
  }
  if (std::holds_alternative<NcclSpec>(kind) && !lab.spec.fabric.native()) {
    return lab.Refuse("fabric.preset",
                      absl::StrFormat("fabric.preset is %s, and what NCCL sends passes no wire of "
                                      "ranklab's that could shape it; with exchange.kind nccl, "
                                      "native",
                                      lab.spec.fabric.preset));
  }
  return absl::OkStatus();
}

absl::Status CheckSharedGpu(const Checked& lab) {
  const ClusterSpec& cluster = lab.spec.cluster;
  if (!cluster.shared_gpu) {
    return absl::OkStatus();
  }
  if (cluster.device == "cpu") {
    return lab.Refuse(
        "cluster.shared_gpu",
        "cluster.shared_gpu is true and cluster.device cpu; there is no GPU to share");
  }
  if (cluster.workers == 0 || cluster.workers > kMostOnOneGpu) {
    return lab.Refuse(
        "cluster.shared_gpu",
        absl::StrFormat("cluster.shared_gpu with %s workers; at most %d share a GPU",
                        cluster.workers == 0 ? "all" : std::to_string(cluster.workers),
                        kMostOnOneGpu));
  }
  return absl::OkStatus();
}

// A server updates the part of the parameters that it holds; no one sees the whole gradient.
absl::Status CheckClipping(const Checked& lab) {
  if (lab.spec.train.clip_norm > 0 &&
      std::holds_alternative<ParameterServerSpec>(lab.spec.exchange.kind)) {
    return lab.Refuse("train.clip_norm",
                      "train.clip_norm needs the whole gradient, of which a parameter server sees "
                      "its part; with exchange.kind collective or none");
  }
  return absl::OkStatus();
}

// An overflow on one rank is a step that all skip, which workers in steps of their own cannot.
absl::Status CheckLossScale(const Checked& lab) {
  if (!lab.spec.asynchronous()) {
    return absl::OkStatus();
  }
  for (const auto& [path, name] :
       {std::pair("train.precision", &lab.spec.train.precision),
        std::pair("exchange.wire_dtype", &lab.spec.exchange.wire_dtype)}) {
    if (*name == "fp16") {
      return lab.Refuse(path, absl::StrFormat("%s fp16 scales the loss, and an overflow skips the "
                                              "step on all ranks; with exchange.staleness 0, or "
                                              "bf16, which needs no scale",
                                              path));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMlp(const Checked& lab, const MlpSpec& mlp) {
  const DataSpec& data = lab.spec.data;
  if (data.of_tokens()) {
    return lab.Refuse("data.kind", absl::StrFormat("data.kind %s is tokens; model.kind mlp takes "
                                                   "digits, idx or synthetic",
                                                   data.kind));
  }
  if (lab.spec.train.recompute) {
    return lab.Refuse("train.recompute", "train.recompute goes with model.kind gpt, not mlp");
  }
  if (data.kind == "idx") {  // the files say, once they are read
    return absl::OkStatus();
  }
  const int inputs = data.kind == "digits" ? 64 : data.inputs;
  const int classes = data.kind == "digits" ? 10 : data.classes;
  if (mlp.layers.front() != inputs) {
    return lab.Refuse("model.layers",
                      absl::StrFormat("model.layers begins with %d; %s has %d inputs",
                                      mlp.layers.front(), data.kind, inputs));
  }
  if (mlp.layers.back() != classes) {
    return lab.Refuse("model.layers",
                      absl::StrFormat("model.layers ends with %d; %s has %d classes",
                                      mlp.layers.back(), data.kind, classes));
  }
  return absl::OkStatus();
}

absl::Status CheckGpt(const Checked& lab, const GptSpec& gpt) {
  const DataSpec& data = lab.spec.data;
  if (!data.of_tokens()) {
    return lab.Refuse("data.kind", absl::StrFormat("data.kind is \"%s\"; model.kind gpt takes "
                                                   "tokens: one of grammar, text",
                                                   data.kind));
  }
  if (data.kind == "grammar" && gpt.context < 2) {
    return lab.Refuse("model.context",
                      "model.context is 1; a grammar's next token follows from two, at least 2");
  }
  if (data.shortest > gpt.context) {
    return lab.Refuse("data.shortest",
                      absl::StrFormat("data.shortest is %d; at most model.context, %d",
                                      data.shortest, gpt.context));
  }
  return absl::OkStatus();
}

absl::Status CheckModel(const Checked& lab) {
  return std::visit(Overloaded{[&](const MlpSpec& mlp) { return CheckMlp(lab, mlp); },
                               [&](const GptSpec& gpt) { return CheckGpt(lab, gpt); }},
                    lab.spec.model);
}

// The largest of the ends that have the role; -1 when neither has.
Rank LargestEnd(const ShapeLink& link, Role role) {
  return std::max(link.from.role == role ? link.from.rank : -1,
                  link.to.role == role ? link.to.rank : -1);
}

// The largest rank of a worker that an effect speaks of, -1 for none.
Rank LargestRank(const Injection& injection) {
  return std::visit(
      Overloaded{[](const ShapeLink& link) { return LargestEnd(link, Role::kWorker); },
                 [](const Partition& partition) {
                   return partition.side.empty()
                              ? -1
                              : *std::max_element(partition.side.begin(), partition.side.end());
                 },
                 [](const Heal&) { return -1; }, [](const auto& of_rank) { return of_rank.rank; }},
      injection.effect);
}

absl::Status CheckEndsOf(const Checked& lab, const ShapeLink& link) {
  const Rank server = LargestEnd(link, Role::kServer);
  const bool has_servers = std::holds_alternative<ParameterServerSpec>(lab.spec.exchange.kind);
  if (server < 0) {
    return has_servers ? InvalidArgument(
                             "a link between two workers, who speak with servers alone when "
                             "exchange.kind is ps; such as %d-ps0",
                             link.from.rank)
                       : absl::OkStatus();
  }
  if (!has_servers) {
    return InvalidArgument(
        "a link to ps%d, but exchange.kind is not ps: there are no servers; two workers, such as "
        "0-1",
        server);
  }
  const int servers = lab.spec.cluster.servers;
  if (server >= servers) {
    return InvalidArgument("ps%d of %d server%s; the last is ps%d", server, servers,
                           servers == 1 ? "" : "s", servers - 1);
  }
  return absl::OkStatus();
}

absl::Status CheckInjection(const Checked& lab, const Injection& injection) {
  const int workers = lab.spec.cluster.workers;
  if (workers > 0 && LargestRank(injection) >= workers) {
    return InvalidArgument("rank %d of %d workers; ranks are 0 to %d", LargestRank(injection),
                           workers, workers - 1);
  }
  if (const auto* link = std::get_if<ShapeLink>(&injection.effect)) {
    RETURN_IF_ERROR(CheckEndsOf(lab, *link));
  }
  if (injection.at_step > lab.spec.train.steps) {
    return InvalidArgument("at_step %d is after the last step, %d", injection.at_step,
                           lab.spec.train.steps);
  }
  return absl::OkStatus();
}

absl::Status CheckScenario(const Checked& lab) {
  const ConfigNode* entries = lab.root.Find("scenario");
  for (const Injection& injection : lab.spec.scenario.injections) {
    const absl::Status status = CheckInjection(lab, injection);
    if (status.ok()) {
      continue;
    }
    // Injections are ordered by step, entries as they were written: an entry is known by its text.
    const auto entry =
        std::find_if(entries->items.begin(), entries->items.end(),
                     [&](const ConfigNode& item) { return Render(item) == injection.text; });
    return Complain(
        lab.source, *entry,
        absl::StrFormat("scenario[%d]: %s", entry - entries->items.begin(), MessageOf(status)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSpec(const ConfigSource& source, const ConfigNode& root, const LabSpec& spec) {
  const Checked lab{source, root, spec};
  RETURN_IF_ERROR(CheckBatch(lab));
  RETURN_IF_ERROR(CheckExchange(lab));
  RETURN_IF_ERROR(CheckSharedGpu(lab));
  RETURN_IF_ERROR(CheckClipping(lab));
  RETURN_IF_ERROR(CheckLossScale(lab));
  RETURN_IF_ERROR(CheckModel(lab));
  return CheckScenario(lab);
}

}  // namespace ranklab::experiment
