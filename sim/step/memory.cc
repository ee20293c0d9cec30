#include "sim/step/memory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <absl/strings/str_format.h>

namespace ranklab::sim {
namespace {

constexpr double kWeightBytes = 2;
constexpr double kOptimizerBytes = 12;  // fp32 weights and two moments

// sb/c: tokens of a micro-batch on a device.
double Tokens(const Transformer& model, const ParallelPlan& plan) {
  return static_cast<double>(model.sequence) * plan.micro_batch / plan.context;
}

// Bytes a token and hidden element: of what every tensor rank holds whole, and of what it shares.
struct TermsPerElement {
  double whole = 0;
  double shared = 0;
};

TermsPerElement LayerTerms(const Transformer& model) {
  const double h = model.hidden;
  const double key_value = static_cast<double>(model.groups) / model.heads;
  const double masks = model.dropout ? 2 : 0;
  const double attention = 2 + 4 * key_value + 2;  // queries, keys and values, the core's output
  const double stored = model.gated ? 3 : 2;       // the activation's inputs and its output
  const double expert_share = model.top_k;
  return {.whole = 2 + 2 + 4 + masks,  // inputs of both parts, of two norms, masks
          .shared = attention + expert_share * 2 * stored * model.feed_forward / h};
}

// 5 a s^2 b / t bytes: softmax, dropout's output and mask. Without dropout 2 of them.
double ScoreBytes(const Transformer& model, const ParallelPlan& plan) {
  const double bytes = model.dropout ? 5 : 2;
  return bytes * model.heads * model.sequence * Tokens(model, plan) / plan.tensor;
}

bool KeepsScores(const ParallelPlan& plan) {
  return plan.recompute == Recompute::kNone && !plan.flash_attention;
}

double WithoutScores(const Transformer& model, const ParallelPlan& plan) {
  const TermsPerElement terms = LayerTerms(model);
  const double whole = terms.whole / (plan.sequence_parallel ? plan.tensor : 1);
  return Tokens(model, plan) * model.hidden * (whole + terms.shared / plan.tensor);
}

double OutsideLayers(const Transformer& model, const ParallelPlan& plan, int stage) {
  const double sbh = Tokens(model, plan) * model.hidden;
  double bytes = 0;
  if (stage == 0 && model.dropout) {
    bytes += sbh * std::min(plan.pipeline, plan.micro_batches()) / plan.tensor;
  }
  if (stage == plan.pipeline - 1) {
    // The last norm's and the head's input, and the logits in 32 bits.
    bytes += 4 * sbh / plan.tensor + 4 * Tokens(model, plan) * model.vocabulary / plan.tensor;
  }
  return bytes;
}

// A layer that is recomputed holds its activations while it is; the scores live then, too.
double WorkingBytes(const Transformer& model, const ParallelPlan& plan) {
  double bytes = 0;
  if (plan.recompute == Recompute::kFull) {
    bytes += WithoutScores(model, plan);
  }
  if (!KeepsScores(plan) && !plan.flash_attention) {
    bytes += ScoreBytes(model, plan);
  }
  if (plan.zero == 3) {
    bytes += 2 * kWeightBytes * LayerMatrixParameters(model) / plan.tensor;  // this and the next
  }
  return bytes;
}

}  // namespace

double LayerActivationBytes(const Transformer& model, const ParallelPlan& plan) {
  if (plan.recompute == Recompute::kFull) {
    const double cut = plan.sequence_parallel ? plan.tensor : 1;
    return 2 * Tokens(model, plan) * model.hidden / cut;
  }
  return WithoutScores(model, plan) + (KeepsScores(plan) ? ScoreBytes(model, plan) : 0);
}

double LayersInFlight(const Transformer& model, const ParallelPlan& plan, int stage) {
  const double stage_layers = static_cast<double>(model.layers) / plan.pipeline;
  const double micro_batches = plan.micro_batches();
  switch (plan.order) {
    case PipelineOrder::kGpipe:
      return stage_layers * micro_batches;
    case PipelineOrder::k1F1B:
      return stage_layers * std::min<double>(micro_batches, plan.pipeline - stage);
    case PipelineOrder::kInterleaved: {
      // Chunks of the warm-up, 2(p-1-stage) + (v-1)p, and the one that comes next.
      const double chunks = 2.0 * (plan.pipeline - 1 - stage) +
                            static_cast<double>(plan.interleave - 1) * plan.pipeline + 1;
      return stage_layers / plan.interleave * std::min(chunks, micro_batches * plan.interleave);
    }
  }
  return 0;
}

double ActivationBytes(const Transformer& model, const ParallelPlan& plan, int stage) {
  return LayersInFlight(model, plan, stage) * LayerActivationBytes(model, plan) +
         OutsideLayers(model, plan, stage);
}

double StateBytesPerParameter(const ParallelPlan& plan) {
  const double d = plan.data;
  return kWeightBytes / (plan.zero >= 3 ? d : 1) + plan.gradient_bytes / (plan.zero >= 2 ? d : 1) +
         kOptimizerBytes / (plan.zero >= 1 ? d : 1);
}

double LayerParametersOnDevice(const Transformer& model, const ParallelPlan& plan) {
  const double experts = model.experts * FeedForwardParameters(model);
  const double layer = LayerMatrixParameters(model) - experts + experts / plan.expert;
  return model.layers * layer / (static_cast<double>(plan.tensor) * plan.pipeline);
}

double ParametersOnDevice(const Transformer& model, const ParallelPlan& plan, int stage) {
  const bool first = stage == 0;
  const bool last = stage == plan.pipeline - 1;
  double tables = first ? 1 : 0;
  tables += last && (plan.pipeline > 1 || !model.tied) ? 1 : 0;
  const double positions = first && model.learned_positions ? model.sequence : 0;
  const double embedding = (tables * model.vocabulary / plan.tensor + positions) * model.hidden;
  return LayerParametersOnDevice(model, plan) + embedding;
}

MemoryUse MemoryOf(const Transformer& model, const ParallelPlan& plan) {
  MemoryUse fullest;
  const double d = plan.data;
  for (const int stage : {0, plan.pipeline - 1}) {
    const double parameters = ParametersOnDevice(model, plan, stage);
    MemoryUse use{.stage = stage,
                  .weights = parameters * kWeightBytes / (plan.zero >= 3 ? d : 1),
                  .gradients = parameters * plan.gradient_bytes / (plan.zero >= 2 ? d : 1),
                  .optimizer = parameters * kOptimizerBytes / (plan.zero >= 1 ? d : 1),
                  .activations = ActivationBytes(model, plan, stage),
                  .working = WorkingBytes(model, plan)};
    use.fragmentation = use.total() * kFragmentation;
    if (use.total() > fullest.total()) {
      fullest = use;
    }
  }
  return fullest;
}

std::string WhatWouldFit(const Transformer& model, const ParallelPlan& plan, double capacity) {
  if (MemoryOf(model, plan).total() <= capacity) {
    return {};
  }
  std::vector<std::pair<std::string, ParallelPlan>> changes;
  ParallelPlan changed = plan;
  const auto add = [&](const std::string& words) { changes.emplace_back(words, changed); };
  if (plan.recompute == Recompute::kNone) {
    changed.recompute = Recompute::kSelective;
    add("selective recompute");
  }
  if (!plan.sequence_parallel && plan.tensor > 1) {
    changed.sequence_parallel = true;
    add("sequence parallelism");
  }
  if (plan.zero == 0 && plan.data > 1) {
    changed.zero = 1;
    add("ZeRO-1");
  }
  if (plan.recompute != Recompute::kFull) {
    changed.recompute = Recompute::kFull;
    add("full recompute");
  }
  if (plan.zero < 3 && plan.pipeline == 1 && plan.data > 1) {
    changed.zero = 3;
    add("ZeRO-3");
  }
  std::string words;
  for (const auto& [what, with] : changes) {
    words += (words.empty() ? "" : " and ") + what;
    const double total = MemoryOf(model, with).total();
    if (total <= capacity) {
      return absl::StrFormat("%s (%.1f GB)", words, total / 1e9);
    }
  }
  return "more tensor or pipeline parallelism, or a smaller micro-batch";
}

}  // namespace ranklab::sim
