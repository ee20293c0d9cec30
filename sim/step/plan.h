// How a model is spread over devices.
#pragma once

#include <cstdint>
#include <string>

#include <absl/status/status.h>

#include "sim/step/transformer.h"

namespace ranklab::sim {

enum class Recompute : std::uint8_t { kNone, kSelective, kFull };
enum class PipelineOrder : std::uint8_t { kGpipe, k1F1B, kInterleaved };

struct ParallelPlan {
  int data = 1;
  int tensor = 1;
  int pipeline = 1;
  int context = 1;                 // the sequence is cut into as many parts
  int expert = 1;                  // of the data-parallel ranks: as many share a layer's experts
  bool sequence_parallel = false;  // norms and dropout are cut along the sequence, by `tensor`
  PipelineOrder order = PipelineOrder::k1F1B;
  int interleave = 1;  // model chunks a stage
  int micro_batch = 1;
  int global_batch = 1;
  int zero = 0;  // 0: nothing sharded over data; 1: optimizer; 2: and gradients; 3: and weights
  Recompute recompute = Recompute::kNone;
  bool flash_attention = false;    // the s x s scores are never stored
  bool overlap_gradients = false;  // buckets are reduced during the last backward pass
  bool overlap_sends = false;      // the next pass runs while a message to another stage does
  bool overlap_tensor = false;     // weight gradients are computed during the tensor's collectives
  bool cut_messages = true;        // between stages each tensor rank sends its share
  double bucket_bytes = 25e6;      // of gradients, when they overlap
  double gradient_bytes = 4;       // a parameter, as kept and as reduced

  int devices() const { return data * tensor * pipeline * context; }
  int micro_batches() const { return global_batch / (micro_batch * data); }
};

// Errors: InvalidArgument: a degree below 1, or one that does not divide what it cuts; more than
// 2^20 devices or 2^14 micro-batches.
absl::Status CheckPlan(const Transformer& model, const ParallelPlan& plan);

// "tp 8 pp 8 dp 16, micro-batch 1 x 96, 1F1B, full recompute, ZeRO-1"
std::string DescribePlan(const ParallelPlan& plan);

}  // namespace ranklab::sim
