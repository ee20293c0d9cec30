// What a worker's memory should be, by kind: the closed forms that the counted bytes are compared
// with.
#pragma once

#include <array>
#include <optional>

#include "compute/tensor.h"
#include "core/units.h"
#include "experiment/lab_spec.h"
#include "worker/model.h"

namespace ranklab::worker {

// [MemoryKind]; empty for a kind without a closed form.
using MemoryPrediction = std::array<std::optional<Bytes>, compute::kMemoryKinds>;

// The peak of each kind in a step of N parameters in fp32, b = 4 bytes each:
//
//   weights    b N
//   gradients  b (N + kGradientTail)
//   optimizer  2 b N with AdamW, b N with momentum, 0 for plain SGD and where a server applies the
//   update
//
// and for an mlp with widths d_0 .. d_L in micro-batches of m samples, whose layers' outputs are
// kept for the backward pass, which needs two more of the widest as it goes through the layers:
//
//   activations  b m (d_1 + ... + d_L + 2 max(d_1 .. d_L))
//   data         b m (d_0 + 1)     the micro-batch's inputs and labels
//
// and for a gpt of L blocks, hidden C, H heads, T tokens, V vocabulary, of which K = L blocks keep
// their activations, or K = 1 where they are recomputed (worker/gpt.h lists the tensors):
//
//   activations  b m T ((L + 8) C + K (15 C + H + 4) + 2 V + 2)
//   data         b m T 2           tokens and labels
//
// In bf16 and fp16, weights are b N of master parameters and 2 N of a rounded copy; activations but
// for their statistics (H + 4 a block, 2 at the end) are 2 bytes each, and data has a rounded copy
// of an mlp's inputs. Gradients that travel in 16 bits are 2 N of communication.
//
// Source of the states: Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion
// Parameter Models, SC 2020, section 3.1 (weights, gradients, optimizer states of data
// parallelism).
MemoryPrediction PredictMemory(const experiment::LabSpec& spec, const Model& model);

}  // namespace ranklab::worker
