// The model of worker/mlp.h in double precision and plain loops: what its passes are held against.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace ranklab::worker {

struct ReferenceResult {
  double loss = 0;               // sum over the samples
  std::vector<double> gradient;  // of the sum, laid out as the parameters
};

// inputs (samples, widths[0]); parameters as Mlp lays them out.
inline ReferenceResult ReferenceLoss(const std::vector<int>& widths,
                                     const std::vector<double>& parameters,
                                     const std::vector<double>& inputs,
                                     const std::vector<int>& labels) {
  ReferenceResult result{.loss = 0, .gradient = std::vector<double>(parameters.size(), 0.0)};
  const int layers = static_cast<int>(widths.size()) - 1;
  std::vector<std::size_t> begins{0};
  for (int l = 0; l < layers; ++l) {
    begins.push_back(begins.back() + static_cast<std::size_t>(widths[l] + 1) * widths[l + 1]);
  }
  for (std::size_t sample = 0; sample < labels.size(); ++sample) {
    std::vector<std::vector<double>> x(widths.size());
    x[0].assign(inputs.begin() + sample * widths[0], inputs.begin() + (sample + 1) * widths[0]);
    for (int l = 0; l < layers; ++l) {
      const double* weight = &parameters[begins[l]];
      const double* bias = weight + widths[l] * widths[l + 1];
      for (int o = 0; o < widths[l + 1]; ++o) {
        double sum = bias[o];
        for (int i = 0; i < widths[l]; ++i) {
          sum += weight[o * widths[l] + i] * x[l][i];
        }
        x[l + 1].push_back(l + 1 < layers ? std::max(0.0, sum) : sum);
      }
    }
    std::vector<double> dy = x.back();
    const double largest = *std::max_element(dy.begin(), dy.end());
    double total = 0;
    for (double& value : dy) {
      value = std::exp(value - largest);
      total += value;
    }
    result.loss += std::log(total) + largest - x.back()[labels[sample]];
    for (double& value : dy) {
      value /= total;
    }
    dy[labels[sample]] -= 1;
    for (int l = layers - 1; l >= 0; --l) {
      const double* weight = &parameters[begins[l]];
      double* d_weight = &result.gradient[begins[l]];
      double* d_bias = d_weight + widths[l] * widths[l + 1];
      std::vector<double> dx(widths[l], 0.0);
      for (int o = 0; o < widths[l + 1]; ++o) {
        d_bias[o] += dy[o];
        for (int i = 0; i < widths[l]; ++i) {
          d_weight[o * widths[l] + i] += dy[o] * x[l][i];
          dx[i] += dy[o] * weight[o * widths[l] + i];
        }
      }
      for (int i = 0; i < widths[l]; ++i) {
        dx[i] = x[l][i] > 0 ? dx[i] : 0;
      }
      dy = dx;
    }
  }
  return result;
}

}  // namespace ranklab::worker
