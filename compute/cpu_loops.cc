// Always optimised, whatever the build type (see CMakeLists.txt).
#include "compute/cpu_loops.h"

#include <bit>
#include <cmath>

#include "compute/vectorized.h"

namespace ranklab::compute::loops {
namespace {

// exp(x) to 2 units in the last place; 0 below -87, where float32 soon has no more normal numbers,
// exp(88) above 88; keeps NaN. Without branches or table, so that loops over it become vector code.
// Source: the polynomial of Moshier's Cephes library, expf.c.
[[gnu::always_inline]] inline float Exp(float argument) {
  constexpr float kLeast = -87.0F;
  constexpr float kMost = 88.0F;
  float x = argument < kLeast ? kLeast : argument;
  x = x > kMost ? kMost : x;
  // Adding this leaves the nearest whole number in the lowest bits.
  constexpr float kRounder = 12582912.0F;  // 1.5 x 2^23
  const float shifted = x * 1.44269504F + kRounder;
  const float n = shifted - kRounder;
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;  // log 2 in two parts
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  constexpr std::int32_t kExponentOfOne = 127;
  const std::int32_t exponent =
      std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kRounder) + kExponentOfOne;
  const float power = p * std::bit_cast<float>(exponent << 23);
  return argument < kLeast ? 0.0F : power;
}

// 0.5 (1 + tanh(u / 2)) with u = 2 sqrt(2 / pi) (x + 0.044715 x^3).
[[gnu::always_inline]] inline float GeluGate(float x) {
  return 1.0F / (1.0F + Exp(-kGeluScale * (x + kGeluCubic * x * x * x)));
}

[[gnu::always_inline]] inline void AddRow(float* __restrict sums, const float* __restrict values,
                                          std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    sums[i] += values[i];
  }
}

[[gnu::always_inline]] inline void ScaleRow(float* __restrict x, float factor, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    x[i] *= factor;
  }
}

// out = exp(scale x (in - largest of in)), and their sum; `out` may be `in`.
[[gnu::always_inline]] inline Exponentials ShiftedExponentials(const float* in, float* out,
                                                               float scale, std::int64_t n) {
  float largest = in[0];
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < n; ++i) {
    largest = in[i] > largest ? in[i] : largest;
  }
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = Exp(scale * (in[i] - largest));
    sum += out[i];
  }
  return {.largest = largest, .sum = sum};
}

}  // namespace

RANKLAB_VECTORIZED void AddBias(float* __restrict x, const float* __restrict bias,
                                std::int64_t rows, std::int64_t n, bool relu) {
  for (std::int64_t row = 0; row < rows; ++row, x += n) {
    if (relu) {
      for (std::int64_t i = 0; i < n; ++i) {
        const float sum = x[i] + bias[i];
        x[i] = sum < 0.0F ? 0.0F : sum;
      }
    } else {
      AddRow(x, bias, n);
    }
  }
}

RANKLAB_VECTORIZED void AddBiasResidual(float* __restrict x, const float* __restrict bias,
                                        const float* __restrict residual, std::int64_t rows,
                                        std::int64_t n) {
  for (std::int64_t row = 0; row < rows; ++row, x += n, residual += n) {
    for (std::int64_t i = 0; i < n; ++i) {
      x[i] += bias[i] + residual[i];
    }
  }
}

RANKLAB_VECTORIZED void AddBiasGelu(float* __restrict x, const float* __restrict bias,
                                    float* __restrict y, std::int64_t rows, std::int64_t n) {
  for (std::int64_t row = 0; row < rows; ++row, x += n, y += n) {
    for (std::int64_t i = 0; i < n; ++i) {
      const float sum = x[i] + bias[i];
      x[i] = sum;
      y[i] = sum * GeluGate(sum);
    }
  }
}

RANKLAB_VECTORIZED void ReluBackward(const float* __restrict y, float* __restrict dy,
                                     std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    dy[i] = y[i] > 0.0F ? dy[i] : 0.0F;
  }
}

RANKLAB_VECTORIZED void GeluBackward(const float* __restrict x, float* __restrict dy,
                                     std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float gate = GeluGate(x[i]);
    const float slope = kGeluScale * (1.0F + 3.0F * kGeluCubic * x[i] * x[i]);
    dy[i] *= gate + x[i] * gate * (1.0F - gate) * slope;
  }
}

RANKLAB_VECTORIZED void AddTo(float* __restrict sums, const float* __restrict values,
                              std::int64_t count) {
  AddRow(sums, values, count);
}

RANKLAB_VECTORIZED void Add(float* __restrict out, const float* __restrict a,
                            const float* __restrict b, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = a[i] + b[i];
  }
}

RANKLAB_VECTORIZED void AccumulateRowSums(float* __restrict sums, const float* __restrict x,
                                          std::int64_t rows, std::int64_t n) {
  for (std::int64_t row = 0; row < rows; ++row, x += n) {
    AddRow(sums, x, n);
  }
}

RANKLAB_VECTORIZED void LayerNormRow(const float* __restrict x, const float* __restrict gain,
                                     const float* __restrict bias, float* __restrict y,
                                     float* __restrict statistics, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) {
    sum += x[i];
  }
  const float mean = sum / static_cast<float>(n);
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t i = 0; i < n; ++i) {
    squares += (x[i] - mean) * (x[i] - mean);
  }
  const float inverse = 1.0F / std::sqrt(squares / static_cast<float>(n) + kLayerNormEpsilon);
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] = (x[i] - mean) * inverse * gain[i] + bias[i];
  }
  statistics[0] = mean;
  statistics[1] = inverse;
}

// With x^ = (x - mean) inverse and g = dy gain: dx = inverse (g - mean of g - x^ mean of g x^).
RANKLAB_VECTORIZED void LayerNormBackwardRow(
    const float* __restrict x, const float* __restrict gain, const float* __restrict statistics,
    const float* __restrict dy, const LayerNormRowGradients& gradients, std::int64_t n) {
  float* __restrict dx = gradients.dx;
  float* __restrict dgain = gradients.dgain;
  float* __restrict dbias = gradients.dbias;
  const float mean = statistics[0];
  const float inverse = statistics[1];
  float sum = 0;
  float product = 0;
#pragma omp simd reduction(+ : sum, product)
  for (std::int64_t i = 0; i < n; ++i) {
    const float normal = (x[i] - mean) * inverse;
    dgain[i] += dy[i] * normal;
    dbias[i] += dy[i];
    sum += dy[i] * gain[i];
    product += dy[i] * gain[i] * normal;
  }
  sum /= static_cast<float>(n);
  product /= static_cast<float>(n);
  if (gradients.beta == 0.0F) {  // dx need not hold numbers
    for (std::int64_t i = 0; i < n; ++i) {
      dx[i] = inverse * (dy[i] * gain[i] - sum - (x[i] - mean) * inverse * product);
    }
    return;
  }
  const float beta = gradients.beta;
  for (std::int64_t i = 0; i < n; ++i) {
    dx[i] = beta * dx[i] + inverse * (dy[i] * gain[i] - sum - (x[i] - mean) * inverse * product);
  }
}

RANKLAB_VECTORIZED float SoftmaxRow(float* __restrict scores, float scale, std::int64_t n) {
  const auto [largest, sum] = ShiftedExponentials(scores, scores, scale, n);
  ScaleRow(scores, 1.0F / sum, n);
  return scale * largest + std::log(sum);
}

RANKLAB_VECTORIZED void WeightsRow(float* __restrict scores, float scale, float log_sum,
                                   std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    scores[i] = Exp(scale * scores[i] - log_sum);
  }
}

RANKLAB_VECTORIZED void SoftmaxBackwardRow(const float* __restrict weights,
                                           float* __restrict dweights, float mean, float scale,
                                           std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    dweights[i] = scale * weights[i] * (dweights[i] - mean);
  }
}

RANKLAB_VECTORIZED float Dot(const float* __restrict a, const float* __restrict b, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

RANKLAB_VECTORIZED Exponentials ExponentialsRow(const float* __restrict logits,
                                                float* __restrict gradient, std::int64_t n) {
  return ShiftedExponentials(logits, gradient, /*scale=*/1.0F, n);
}

RANKLAB_VECTORIZED void Scale(float* __restrict x, float factor, std::int64_t n) {
  ScaleRow(x, factor, n);
}

RANKLAB_VECTORIZED void SgdUpdate(float* __restrict p, const float* __restrict g,
                                  std::int64_t count, float scale, float rate) {
  for (std::int64_t i = 0; i < count; ++i) {
    p[i] -= rate * (scale * g[i]);
  }
}

RANKLAB_VECTORIZED void MomentumUpdate(float* __restrict p, const float* __restrict g,
                                       float* __restrict v, std::int64_t count, float scale,
                                       float rate, float momentum) {
  for (std::int64_t i = 0; i < count; ++i) {
    v[i] = momentum * v[i] + scale * g[i];
    p[i] -= rate * v[i];
  }
}

RANKLAB_VECTORIZED void AdamWUpdate(float* __restrict p, const float* __restrict g,
                                    float* __restrict m, float* __restrict v, std::int64_t count,
                                    float scale, const AdamWStep& step) {
  const float keep = 1.0F - step.decay;
  const float rate = step.rate / step.correction1;
  const float root = 1.0F / std::sqrt(step.correction2);
  for (std::int64_t i = 0; i < count; ++i) {
    const float gradient = scale * g[i];
    m[i] = step.beta1 * m[i] + step.rest1 * gradient;
    v[i] = step.beta2 * v[i] + step.rest2 * gradient * gradient;
    p[i] = keep * p[i] - rate * m[i] / (std::sqrt(v[i]) * root + step.epsilon);
  }
}

RANKLAB_VECTORIZED double SumOfSquares(const float* __restrict x, std::int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) {
    sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
  return sum;
}

}  // namespace ranklab::compute::loops
