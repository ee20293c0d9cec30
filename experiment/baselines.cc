#include "experiment/baselines.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "core/overloaded.h"

namespace ranklab::experiment {
namespace {

std::vector<std::int64_t> ModelKey(const LabSpec& spec) {
  return std::visit(Overloaded{[](const MlpSpec& mlp) {
                                 return std::vector<std::int64_t>(mlp.layers.begin(),
                                                                  mlp.layers.end());
                               },
                               [](const GptSpec& gpt) {
                                 return std::vector<std::int64_t>{gpt.layers, gpt.hidden, gpt.heads,
                                                                  gpt.context, gpt.tied};
                               }},
                    spec.model);
}

// What one worker's samples a second depend on.
auto SpeedKey(const LabSpec& spec) {
  return std::tuple(std::tuple(spec.model.index(), ModelKey(spec)),
                    std::tuple(spec.data.Key(), spec.data.loaders, spec.data.prefetch),
                    std::tuple(spec.train.warmup_steps, spec.BatchOf(0), spec.train.accumulate,
                               spec.train.optimizer, spec.train.precision, spec.train.recompute,
                               spec.train.clip_norm > 0),
                    std::tuple(spec.cluster.device, spec.compute.model, spec.compute.threads,
                               spec.compute.op_overhead.count(), spec.fabric.time_scale));
}

LabSpec Alone(const LabSpec& spec) {
  LabSpec alone = spec;
  alone.train.batch_per_worker = spec.BatchOf(0);
  alone.train.global_batch = 0;
  alone.cluster.workers = 1;
  alone.cluster.servers = 0;
  alone.fabric.preset = "native";
  alone.exchange.kind = NoExchange{};
  alone.scenario = {};
  alone.scenario.seed = spec.seed;
  return alone;
}

bool Serves(const Cell& cell, const LabSpec& alone) {
  return std::holds_alternative<NoExchange>(cell.spec.exchange.kind) &&
         cell.spec.scenario.injections.empty() && SpeedKey(cell.spec) == SpeedKey(alone);
}

}  // namespace

void AddBaselines(int part_index, Part& part) {
  const std::size_t swept = part.cells.size();
  for (std::size_t i = 0; i < swept; ++i) {
    if (std::holds_alternative<NoExchange>(part.cells[i].spec.exchange.kind)) {
      continue;
    }
    LabSpec spec = part.cells[i].spec;
    if (spec.cluster.workers == 0) {
      spec.cluster.workers = 1;  // weak scaling: the batch of a worker is the same for any number
    }
    LabSpec alone = Alone(spec);
    const auto found =
        std::find_if(part.cells.begin(), part.cells.end(),
                     [&](const Cell& candidate) { return Serves(candidate, alone); });
    part.cells[i].baseline_index = static_cast<int>(found - part.cells.begin());
    if (found == part.cells.end()) {
      const std::string batch = std::to_string(alone.train.batch_per_worker);
      part.cells.push_back({.part = part_index,
                            .index = static_cast<int>(part.cells.size()),
                            .baseline = true,
                            .spec = std::move(alone),
                            .settings = {{"train.batch_per_worker", batch}}});
    }
  }
}

}  // namespace ranklab::experiment
