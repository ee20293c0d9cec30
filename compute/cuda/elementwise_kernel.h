// Operations on each element of a tensor (rows, n), as what a thread does with up to four of them,
// those at (row, column) and behind. A flat tensor is one row.
#pragma once

#include <cmath>
#include <cstdint>

#include "compute/cuda/host_device.h"
#include "compute/cuda/storage.h"
#include "compute/operation_terms.h"

namespace ranklab::compute::cuda {

// The share of x in GELU(x).
RANKLAB_HOST_DEVICE inline float GeluGate(float x) {
  return 1.0F / (1.0F + std::exp(-kGeluScale * (x + kGeluCubic * x * x * x)));
}

RANKLAB_HOST_DEVICE inline float GeluSlope(float x) {
  const float gate = GeluGate(x);
  const float slope = kGeluScale * (1.0F + 3.0F * kGeluCubic * x * x);
  return gate + x * gate * (1.0F - gate) * slope;
}

// x += bias (n), then max(0, x) if relu; a NaN stays one, so that divergence shows.
struct AddBiasKernel {
  Operand x, bias;
  std::int64_t n;
  bool relu;

  RANKLAB_HOST_DEVICE void operator()(std::int64_t row, std::int64_t column, int count) const {
    Four sums = LoadFour(x, row * n + column, count);
    const Four biases = LoadFour(bias, column, count);
    for (int k = 0; k < 4; ++k) {
      sums.at[k] += biases.at[k];
      sums.at[k] = relu && sums.at[k] < 0.0F ? 0.0F : sums.at[k];
    }
    StoreFour(x, row * n + column, sums, count);
  }
};

struct AddBiasGeluKernel {
  Operand x, bias, y;
  std::int64_t n;

  RANKLAB_HOST_DEVICE void operator()(std::int64_t row, std::int64_t column, int count) const {
    const std::int64_t i = row * n + column;
    Four sums = LoadFour(x, i, count);
    const Four biases = LoadFour(bias, column, count);
    Four gelu;
    for (int k = 0; k < 4; ++k) {
      sums.at[k] += biases.at[k];
      gelu.at[k] = sums.at[k] * GeluGate(sums.at[k]);
    }
    StoreFour(x, i, sums, count);
    StoreFour(y, i, gelu, count);
  }
};

struct AddBiasResidualKernel {
  Operand x, bias, residual;
  std::int64_t n;

  RANKLAB_HOST_DEVICE void operator()(std::int64_t row, std::int64_t column, int count) const {
    const std::int64_t i = row * n + column;
    Four sums = LoadFour(x, i, count);
    const Four biases = LoadFour(bias, column, count);
    const Four residuals = LoadFour(residual, i, count);
    for (int k = 0; k < 4; ++k) {
      sums.at[k] += biases.at[k] + residuals.at[k];
    }
    StoreFour(x, i, sums, count);
  }
};

struct ReluBackwardKernel {
  Operand y, dy;

  RANKLAB_HOST_DEVICE void operator()(std::int64_t, std::int64_t i, int count) const {
    const Four outputs = LoadFour(y, i, count);
    Four gradients = LoadFour(dy, i, count);
    for (int k = 0; k < 4; ++k) {
      gradients.at[k] = outputs.at[k] > 0.0F ? gradients.at[k] : 0.0F;
    }
    StoreFour(dy, i, gradients, count);
  }
};

struct GeluBackwardKernel {
  Operand x, dy;

  RANKLAB_HOST_DEVICE void operator()(std::int64_t, std::int64_t i, int count) const {
    const Four inputs = LoadFour(x, i, count);
    Four gradients = LoadFour(dy, i, count);
    for (int k = 0; k < 4; ++k) {
      gradients.at[k] *= GeluSlope(inputs.at[k]);
    }
    StoreFour(dy, i, gradients, count);
  }
};

struct ConvertKernel {
  Operand x, y;

  RANKLAB_HOST_DEVICE void operator()(std::int64_t, std::int64_t i, int count) const {
    StoreFour(y, i, LoadFour(x, i, count), count);
  }
};

struct SgdKernel {
  Operand parameters, gradients;
  float scale, rate;

  RANKLAB_HOST_DEVICE void operator()(std::int64_t, std::int64_t i, int count) const {
    Four p = LoadFour(parameters, i, count);
    const Four g = LoadFour(gradients, i, count);
    for (int k = 0; k < 4; ++k) {
      p.at[k] -= rate * (scale * g.at[k]);
    }
    StoreFour(parameters, i, p, count);
  }
};

struct MomentumKernel {
  Operand parameters, gradients, velocity;
  float scale, rate, momentum;

  RANKLAB_HOST_DEVICE void operator()(std::int64_t, std::int64_t i, int count) const {
    Four p = LoadFour(parameters, i, count);
    Four v = LoadFour(velocity, i, count);
    const Four g = LoadFour(gradients, i, count);
    for (int k = 0; k < 4; ++k) {
      v.at[k] = momentum * v.at[k] + scale * g.at[k];
      p.at[k] -= rate * v.at[k];
    }
    StoreFour(velocity, i, v, count);
    StoreFour(parameters, i, p, count);
  }
};

// One pass over one flat buffer of each: 16 bytes read and 12 written a parameter.
struct AdamWKernel {
  Operand parameters, gradients, m, v;
  float scale;
  AdamWStep step;

  RANKLAB_HOST_DEVICE void operator()(std::int64_t, std::int64_t i, int count) const {
    Four p = LoadFour(parameters, i, count);
    Four first = LoadFour(m, i, count);
    Four second = LoadFour(v, i, count);
    const Four g = LoadFour(gradients, i, count);
    const float rate = step.rate / step.correction1;
    const float root = 1.0F / std::sqrt(step.correction2);
    for (int k = 0; k < 4; ++k) {
      const float gradient = scale * g.at[k];
      first.at[k] = step.beta1 * first.at[k] + step.rest1 * gradient;
      second.at[k] = step.beta2 * second.at[k] + step.rest2 * gradient * gradient;
      p.at[k] = (1.0F - step.decay) * p.at[k] -
                rate * first.at[k] / (std::sqrt(second.at[k]) * root + step.epsilon);
    }
    StoreFour(m, i, first, count);
    StoreFour(v, i, second, count);
    StoreFour(parameters, i, p, count);
  }
};

}  // namespace ranklab::compute::cuda
