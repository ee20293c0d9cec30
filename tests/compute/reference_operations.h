// Forward passes of the operations of a gpt in double precision and plain loops. What the device's
// forward passes are held against, and through central differences its backward passes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

namespace ranklab::compute::reference {

using Doubles = std::vector<double>;

// x (rows, n) normalised by row, times gain, plus bias.
inline Doubles LayerNorm(const Doubles& x, const Doubles& gain, const Doubles& bias) {
  const std::size_t n = gain.size();
  Doubles y(x.size());
  for (std::size_t row = 0; row < x.size(); row += n) {
    double mean = 0;
    double variance = 0;
    for (std::size_t i = 0; i < n; ++i) {
      mean += x[row + i] / static_cast<double>(n);
    }
    for (std::size_t i = 0; i < n; ++i) {
      variance += (x[row + i] - mean) * (x[row + i] - mean) / static_cast<double>(n);
    }
    for (std::size_t i = 0; i < n; ++i) {
      y[row + i] = (x[row + i] - mean) / std::sqrt(variance + 1e-5) * gain[i] + bias[i];
    }
  }
  return y;
}

inline double Gelu(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

struct Sequences {
  int samples = 1, length = 1, heads = 1, width = 1;  // width of a head
  int hidden() const { return heads * width; }
};

// qkv (samples, length, 3 hidden) -> (samples, length, hidden).
inline Doubles CausalAttention(const Sequences& s, const Doubles& qkv) {
  Doubles out(static_cast<std::size_t>(s.samples) * s.length * s.hidden(), 0.0);
  const auto at = [&](int sample, int position, int part, int head, int i) {
    return ((sample * s.length + position) * 3 + part) * s.hidden() + head * s.width + i;
  };
  for (int sample = 0; sample < s.samples; ++sample) {
    for (int head = 0; head < s.heads; ++head) {
      for (int query = 0; query < s.length; ++query) {
        Doubles weights;
        for (int key = 0; key <= query; ++key) {
          double score = 0;
          for (int i = 0; i < s.width; ++i) {
            score += qkv[at(sample, query, 0, head, i)] * qkv[at(sample, key, 1, head, i)];
          }
          weights.push_back(score / std::sqrt(s.width));
        }
        const double largest = *std::max_element(weights.begin(), weights.end());
        double sum = 0;
        for (double& weight : weights) {
          weight = std::exp(weight - largest);
          sum += weight;
        }
        for (int key = 0; key <= query; ++key) {
          for (int i = 0; i < s.width; ++i) {
            out[(sample * s.length + query) * s.hidden() + head * s.width + i] +=
                weights[key] / sum * qkv[at(sample, key, 2, head, i)];
          }
        }
      }
    }
  }
  return out;
}

// y (rows, outputs) = x (rows, inputs) W (outputs, inputs)^T + b; no b where it is empty.
inline Doubles Linear(const Doubles& x, const Doubles& weight, const Doubles& bias, int inputs) {
  const std::size_t outputs = weight.size() / inputs;
  const std::size_t rows = x.size() / inputs;
  Doubles y(rows * outputs);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t o = 0; o < outputs; ++o) {
      double sum = bias.empty() ? 0.0 : bias[o];
      for (int i = 0; i < inputs; ++i) {
        sum += x[row * inputs + i] * weight[o * inputs + i];
      }
      y[row * outputs + o] = sum;
    }
  }
  return y;
}

// Sum of cross entropies over rows with a label that is not negative.
inline double CrossEntropy(const Doubles& logits, const std::vector<std::int32_t>& labels) {
  const std::size_t classes = logits.size() / labels.size();
  double loss = 0;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] < 0) {
      continue;
    }
    const auto first = logits.begin() + static_cast<std::ptrdiff_t>(row * classes);
    const double largest = *std::max_element(first, first + static_cast<std::ptrdiff_t>(classes));
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      sum += std::exp(logits[row * classes + c] - largest);
    }
    loss += std::log(sum) + largest - logits[row * classes + labels[row]];
  }
  return loss;
}

// d f / d x[i] by a central difference. Error: f''' step^2 / 6, and rounding of f over 2 step; both
// below 1e-8 of values around 1.
inline double Derivative(const std::function<double(const Doubles&)>& f, Doubles x, std::size_t i) {
  constexpr double kStep = 1e-5;
  const double before = x[i];
  x[i] = before + kStep;
  const double above = f(x);
  x[i] = before - kStep;
  return (above - f(x)) / (2 * kStep);
}

}  // namespace ranklab::compute::reference
