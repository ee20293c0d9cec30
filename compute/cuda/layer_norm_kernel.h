// Layer normalization: a block a row. The sums over rows of its backward pass are ColumnSums.
#pragma once

#include <cmath>
#include <cstdint>

#include "compute/cuda/host_device.h"
#include "compute/cuda/storage.h"
#include "compute/operation_terms.h"

namespace ranklab::compute::cuda {

inline constexpr int kLayerNormThreads = 128;

struct LayerNormArguments {
  Operand x, gain, bias, y;
  float* statistics;
  std::int64_t n;
};

// f(i, count) on each four of a row of n that are this thread's.
template <typename Block, typename F>
RANKLAB_HOST_DEVICE void EachFour(int thread, std::int64_t n, F f) {
  for (std::int64_t i = 4 * thread; i < n; i += 4 * Block::kThreads) {
    f(i, n - i < 4 ? static_cast<int>(n - i) : 4);
  }
}

struct AddFloats {
  RANKLAB_HOST_DEVICE float operator()(float a, float b) const { return a + b; }
};

template <typename Block>
RANKLAB_HOST_DEVICE void LayerNormRow(const LayerNormArguments& a, Block& block) {
  const std::int64_t begin = block.x() * a.n;
  const auto n = static_cast<float>(a.n);
  const float mean = block.template Reduce<float>(
                         [&](int thread, auto&) {
                           float sum = 0;
                           EachFour<Block>(thread, a.n, [&](std::int64_t i, int count) {
                             const Four x = LoadFour(a.x, begin + i, count);
                             for (int k = 0; k < 4; ++k) {
                               sum += x.at[k];  // 0 behind the end
                             }
                           });
                           return sum;
                         },
                         AddFloats{}) /
                     n;
  const float squares = block.template Reduce<float>(
      [&](int thread, auto&) {
        float sum = 0;
        EachFour<Block>(thread, a.n, [&](std::int64_t i, int count) {
          const Four x = LoadFour(a.x, begin + i, count);
          for (int k = 0; k < count; ++k) {
            sum += (x.at[k] - mean) * (x.at[k] - mean);
          }
        });
        return sum;
      },
      AddFloats{});
  const float inverse = 1.0F / std::sqrt(squares / n + kLayerNormEpsilon);
  block.Each([&](int thread, auto&) {
    EachFour<Block>(thread, a.n, [&](std::int64_t i, int count) {
      Four y = LoadFour(a.x, begin + i, count);
      const Four gain = LoadFour(a.gain, i, count);
      const Four bias = LoadFour(a.bias, i, count);
      for (int k = 0; k < 4; ++k) {
        y.at[k] = (y.at[k] - mean) * inverse * gain.at[k] + bias.at[k];
      }
      StoreFour(a.y, begin + i, y, count);
    });
    if (thread == 0) {
      a.statistics[2 * block.x()] = mean;
      a.statistics[2 * block.x() + 1] = inverse;
    }
  });
}

struct LayerNormBackwardArguments {
  Operand x, gain, dy, dx;
  const float* statistics;
  std::int64_t n;
  float beta;
};

// With x^ = (x - mean) inverse and g = dy gain: dx = inverse (g - mean of g - x^ mean of g x^).
template <typename Block>
RANKLAB_HOST_DEVICE void LayerNormBackwardRow(const LayerNormBackwardArguments& a, Block& block) {
  struct Sums {
    float plain, with_normal;
  };
  const std::int64_t begin = block.x() * a.n;
  const float mean = a.statistics[2 * block.x()];
  const float inverse = a.statistics[2 * block.x() + 1];
  Sums sums = block.template Reduce<Sums>(
      [&](int thread, auto&) {
        Sums mine = {0, 0};
        EachFour<Block>(thread, a.n, [&](std::int64_t i, int count) {
          const Four x = LoadFour(a.x, begin + i, count);
          const Four dy = LoadFour(a.dy, begin + i, count);
          const Four gain = LoadFour(a.gain, i, count);
          for (int k = 0; k < count; ++k) {
            const float g = dy.at[k] * gain.at[k];
            mine.plain += g;
            mine.with_normal += g * (x.at[k] - mean) * inverse;
          }
        });
        return mine;
      },
      [](const Sums& a, const Sums& b) {
        return Sums{a.plain + b.plain, a.with_normal + b.with_normal};
      });
  sums.plain /= static_cast<float>(a.n);
  sums.with_normal /= static_cast<float>(a.n);
  block.Each([&](int thread, auto&) {
    EachFour<Block>(thread, a.n, [&](std::int64_t i, int count) {
      const Four x = LoadFour(a.x, begin + i, count);
      const Four dy = LoadFour(a.dy, begin + i, count);
      const Four gain = LoadFour(a.gain, i, count);
      // With beta 0, dx need not hold numbers.
      Four dx = a.beta == 0.0F ? Four{} : LoadFour(a.dx, begin + i, count);
      for (int k = 0; k < 4; ++k) {
        const float normal = (x.at[k] - mean) * inverse;
        const float own =
            inverse * (dy.at[k] * gain.at[k] - sums.plain - normal * sums.with_normal);
        dx.at[k] = a.beta * dx.at[k] + own;
      }
      StoreFour(a.dx, begin + i, dx, count);
    });
  });
}

// For ColumnSums: the gradients of gain and bias.
struct LayerNormGradientValues {
  static constexpr int kOutputs = 2;
  Operand x, dy;
  const float* statistics;
  std::int64_t n;

  RANKLAB_HOST_DEVICE void operator()(std::int64_t row, std::int64_t column, int count,
                                      Four* sums) const {
    const Four inputs = LoadFour(x, row * n + column, count);
    const Four gradients = LoadFour(dy, row * n + column, count);
    const float mean = statistics[2 * row];
    const float inverse = statistics[2 * row + 1];
    for (int k = 0; k < 4; ++k) {
      sums[0].at[k] += gradients.at[k] * (inputs.at[k] - mean) * inverse;
      sums[1].at[k] += gradients.at[k];
    }
  }
};

}  // namespace ranklab::compute::cuda
