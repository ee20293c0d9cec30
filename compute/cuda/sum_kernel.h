// The sum of squares in double precision: the gradients' norm and, because an Inf or NaN anywhere
// makes it one, their overflow check, in one pass. Always in the same order.
#pragma once

#include <cstdint>

#include "compute/cuda/host_device.h"
#include "compute/cuda/storage.h"

namespace ranklab::compute::cuda {

inline constexpr int kSumThreads = 256;

struct AddDoubles {
  RANKLAB_HOST_DEVICE double operator()(double a, double b) const { return a + b; }
};

// Block x of `blocks` writes the sum of its part of x (count) to parts[x].
template <typename Block>
RANKLAB_HOST_DEVICE void SquaresOfPart(const Operand& x, std::int64_t count, int blocks,
                                       double* parts, Block& block) {
  const double sum = block.template Reduce<double>(
      [&](int thread, auto&) {
        double mine = 0;
        const std::int64_t step = 4LL * Block::kThreads * blocks;
        for (std::int64_t i = 4LL * (block.x() * Block::kThreads + thread); i < count; i += step) {
          const Four values = LoadFour(x, i, count - i < 4 ? static_cast<int>(count - i) : 4);
          for (int k = 0; k < 4; ++k) {
            mine += static_cast<double>(values.at[k]) * static_cast<double>(values.at[k]);
          }
        }
        return mine;
      },
      AddDoubles{});
  block.Each([&](int thread, auto&) {
    if (thread == 0) {
      parts[block.x()] = sum;
    }
  });
}

// One block: all = the sum of `count` parts.
template <typename Block>
RANKLAB_HOST_DEVICE void SumParts(const double* parts, int count, double* all, Block& block) {
  const double sum = block.template Reduce<double>(
      [&](int thread, auto&) {
        double mine = 0;
        for (int part = thread; part < count; part += Block::kThreads) {
          mine += parts[part];
        }
        return mine;
      },
      AddDoubles{});
  block.Each([&](int thread, auto&) {
    if (thread == 0) {
      *all = sum;
    }
  });
}

}  // namespace ranklab::compute::cuda
