// The CPU's loops over rows of floats, apart from the operations so that they can be compiled for
// the instruction sets of several processor generations; which one runs is chosen at load. The same
// machine always gives the same bits, another one may round differently. Arguments are checked by
// the callers; nothing overlaps but what is in place.
#pragma once

#include <cstdint>

#include "compute/operations.h"

namespace ranklab::compute::loops {

// x (rows, n) += bias (n), then max(0, x) if relu; a NaN stays one, so that divergence shows.
void AddBias(float* x, const float* bias, std::int64_t rows, std::int64_t n, bool relu);
void AddBiasResidual(float* x, const float* bias, const float* residual, std::int64_t rows,
                     std::int64_t n);
void AddBiasGelu(float* x, const float* bias, float* y, std::int64_t rows, std::int64_t n);
void ReluBackward(const float* y, float* dy, std::int64_t count);
void GeluBackward(const float* x, float* dy, std::int64_t count);

void AddTo(float* sums, const float* values, std::int64_t count);          // sums += values
void Add(float* out, const float* a, const float* b, std::int64_t count);  // out = a + b
void AccumulateRowSums(float* sums, const float* x, std::int64_t rows, std::int64_t n);

// One row of n; statistics: mean, 1 / root.
void LayerNormRow(const float* x, const float* gain, const float* bias, float* y, float* statistics,
                  std::int64_t n);
struct LayerNormRowGradients {
  float* dx;
  float beta;
  float *dgain, *dbias;
};
void LayerNormBackwardRow(const float* x, const float* gain, const float* statistics,
                          const float* dy, const LayerNormRowGradients& gradients, std::int64_t n);

// The softmax of scale x scores (n), in place; returns the log of its denominator.
float SoftmaxRow(float* scores, float scale, std::int64_t n);
// weights = exp(scale x scores - log_sum), in place.
void WeightsRow(float* scores, float scale, float log_sum, std::int64_t n);
// dweights becomes scale x weights x (dweights - mean): the gradient of the scores.
void SoftmaxBackwardRow(const float* weights, float* dweights, float mean, float scale,
                        std::int64_t n);
float Dot(const float* a, const float* b, std::int64_t n);

// gradient = exp(logits - largest logit); returns their sum.
struct Exponentials {
  float largest = 0;
  float sum = 0;
};
Exponentials ExponentialsRow(const float* logits, float* gradient, std::int64_t n);
void Scale(float* x, float factor, std::int64_t n);

void SgdUpdate(float* p, const float* g, std::int64_t count, float scale, float rate);
void MomentumUpdate(float* p, const float* g, float* v, std::int64_t count, float scale, float rate,
                    float momentum);
void AdamWUpdate(float* p, const float* g, float* m, float* v, std::int64_t count, float scale,
                 const AdamWStep& step);
double SumOfSquares(const float* x, std::int64_t count);

}  // namespace ranklab::compute::loops
