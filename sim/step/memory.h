// What a device of the fullest pipeline stage has to hold during a step.
// Source: Korthikanti et al., "Reducing activation recomputation in large transformer models",
// arXiv 2205.05198, table 2 and section 4.3; Rajbhandari et al., "ZeRO", SC 2020.
#pragma once

#include <string>

#include "sim/step/plan.h"
#include "sim/step/transformer.h"

namespace ranklab::sim {

// Share of the device's memory that blocks in use cannot fill. Assumed.
inline constexpr double kFragmentation = 0.04;

// Bytes of one layer's activations for one micro-batch on one device, 16 bits an element:
// sbh (10 + 24/t + 5as/(ht)) with tensor parallelism t, 34 instead of 10 + 24 when also the
// sequence is parallel, without 5as/(ht) with selective recomputation or flash attention, 2sbh when
// everything is recomputed. Grouped queries, gates and no dropout change the terms they concern.
double LayerActivationBytes(const Transformer& model, const ParallelPlan& plan);

// Of `stage`, all micro-batches in flight, with what lies outside the layers.
double ActivationBytes(const Transformer& model, const ParallelPlan& plan, int stage);

// How many layers' worth of activations a stage holds at most, over all micro-batches in flight.
double LayersInFlight(const Transformer& model, const ParallelPlan& plan, int stage);

// Bytes a parameter of weights, gradients and optimizer (mixed-precision Adam: 2, 2 or 4, 12),
// after sharding over the data-parallel ranks. 18 without ZeRO and with 32-bit gradients.
double StateBytesPerParameter(const ParallelPlan& plan);

// Parameters of a device's layers only: 12 L h^2 / (t p) in a GPT.
double LayerParametersOnDevice(const Transformer& model, const ParallelPlan& plan);
double ParametersOnDevice(const Transformer& model, const ParallelPlan& plan, int stage);

struct MemoryUse {
  int stage = 0;  // the fullest
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
  double activations = 0;
  double working = 0;  // what a layer that is recomputed or gathered needs on top
  double fragmentation = 0;
  double total() const {
    return weights + gradients + optimizer + activations + working + fragmentation;
  }
};

MemoryUse MemoryOf(const Transformer& model, const ParallelPlan& plan);

// Empty if it fits into `capacity` bytes, else the first change of the plan that makes it fit:
// "full recompute (61.3 GB)".
std::string WhatWouldFit(const Transformer& model, const ParallelPlan& plan, double capacity);

}  // namespace ranklab::sim
