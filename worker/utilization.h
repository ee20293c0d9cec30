// The arithmetic that a model needs, for model FLOPs utilization (MFU) and hardware FLOPs
// utilization (HFU): what of a device's peak a run turned into training.
#pragma once

#include "experiment/lab_spec.h"
#include "experiment/run_record.h"

namespace ranklab::worker {

// FLOPs of a sample's forward and backward pass, for N parameters:
//
//   mlp  6 N
//   gpt  (6 N + 12 L d s) a token, of s in a sample, with L blocks of width d
//
// N counts embeddings, and a tied head once; attention is counted whole, though a causal one needs
// half of it. Hardware FLOPs add what is computed again: with train.recompute all of a block's
// forward pass but its last product, L (16 d^2 + 4 d s) a token.
// The peak is the modelled device's nominal dense one, in the run's precision; 0 on native compute.
// Source: Chowdhery et al., "PaLM", JMLR 2023, appendix B (6 N + 12 L H Q T, no recomputation in
// it).
experiment::WorkRecord WorkOf(const experiment::LabSpec& spec);

}  // namespace ranklab::worker
