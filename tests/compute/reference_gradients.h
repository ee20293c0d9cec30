// Backward passes of a gpt's operations in double precision and plain loops, by their formulas
// (reference_operations.h has the forward passes, whose central differences check these too).
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/compute/reference_operations.h"

namespace ranklab::compute::reference {

inline double GeluSlope(double x) {
  const double scale = std::sqrt(2.0 / std::acos(-1.0));
  const double t = std::tanh(scale * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * scale * (1 + 3 * 0.044715 * x * x);
}

struct NormGradients {
  Doubles dx, dgain, dbias;
};
inline NormGradients LayerNormBackward(const Doubles& x, const Doubles& gain, const Doubles& dy) {
  const std::size_t n = gain.size();
  NormGradients result{Doubles(x.size()), Doubles(n), Doubles(n)};
  for (std::size_t row = 0; row < x.size(); row += n) {
    double mean = 0;
    double variance = 0;
    for (std::size_t i = 0; i < n; ++i) {
      mean += x[row + i] / static_cast<double>(n);
    }
    for (std::size_t i = 0; i < n; ++i) {
      variance += (x[row + i] - mean) * (x[row + i] - mean) / static_cast<double>(n);
    }
    const double inverse = 1 / std::sqrt(variance + 1e-5);
    double plain = 0;
    double with_normal = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double normal = (x[row + i] - mean) * inverse;
      result.dgain[i] += dy[row + i] * normal;
      result.dbias[i] += dy[row + i];
      plain += dy[row + i] * gain[i] / static_cast<double>(n);
      with_normal += dy[row + i] * gain[i] * normal / static_cast<double>(n);
    }
    for (std::size_t i = 0; i < n; ++i) {
      const double normal = (x[row + i] - mean) * inverse;
      result.dx[row + i] = inverse * (dy[row + i] * gain[i] - plain - normal * with_normal);
    }
  }
  return result;
}

// `out` is the forward pass's, as it was stored.
inline Doubles CausalAttentionBackward(const Sequences& s, const Doubles& qkv, const Doubles& out,
                                       const Doubles& dout) {
  Doubles dqkv(qkv.size(), 0.0);
  const double scale = 1 / std::sqrt(static_cast<double>(s.width));
  const auto at = [&](int sample, int position, int part, int head) {
    return ((sample * s.length + position) * 3 + part) * s.hidden() + head * s.width;
  };
  for (int sample = 0; sample < s.samples; ++sample) {
    for (int head = 0; head < s.heads; ++head) {
      for (int query = 0; query < s.length; ++query) {
        const int row = (sample * s.length + query) * s.hidden() + head * s.width;
        Doubles weights;
        double sum = 0;
        double mean = 0;
        for (int i = 0; i < s.width; ++i) {
          mean += dout[row + i] * out[row + i];
        }
        for (int key = 0; key <= query; ++key) {
          double score = 0;
          for (int i = 0; i < s.width; ++i) {
            score += qkv[at(sample, query, 0, head) + i] * qkv[at(sample, key, 1, head) + i];
          }
          weights.push_back(std::exp(score * scale));
          sum += weights.back();
        }
        for (int key = 0; key <= query; ++key) {
          const double weight = weights[key] / sum;
          double dweight = 0;
          for (int i = 0; i < s.width; ++i) {
            dweight += dout[row + i] * qkv[at(sample, key, 2, head) + i];
            dqkv[at(sample, key, 2, head) + i] += weight * dout[row + i];
          }
          const double dscore = scale * weight * (dweight - mean);
          for (int i = 0; i < s.width; ++i) {
            dqkv[at(sample, query, 0, head) + i] += dscore * qkv[at(sample, key, 1, head) + i];
            dqkv[at(sample, key, 1, head) + i] += dscore * qkv[at(sample, query, 0, head) + i];
          }
        }
      }
    }
  }
  return dqkv;
}

}  // namespace ranklab::compute::reference
