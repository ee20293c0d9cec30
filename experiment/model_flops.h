// What a model's arithmetic comes to, for the model FLOPs utilization (MFU) of a run.
#pragma once

#include "experiment/lab_spec.h"

namespace ranklab::experiment {

// Of one sample's forward and backward pass: 6 FLOPs for each weight of a matrix product and token
// (an mlp's sample is one), and 12 L C T a token for a gpt's attention over all T x T scores, L
// layers of C channels. What is recomputed does not count, nor embeddings, norms and optimizer.
// Source: Chowdhery et al., "PaLM: scaling language modeling with pathways", 2022, appendix B.
double ModelFlopsOfSample(const LabSpec& spec);

}  // namespace ranklab::experiment
