// Softmax, cross entropy and its gradient over the logits in one kernel, a block a row; then one
// block adds up the rows.
#pragma once

#include <cmath>
#include <cstdint>

#include "compute/cuda/host_device.h"
#include "compute/cuda/layer_norm_kernel.h"
#include "compute/cuda/storage.h"
#include "compute/operation_terms.h"

namespace ranklab::compute::cuda {

inline constexpr int kCrossEntropyThreads = 128;
inline constexpr std::int64_t kNoRow = INT64_MAX;

// Of a row, and of all of them.
struct LossOfRows {
  double loss;
  std::int64_t correct, targets;
  std::int64_t bad_row;  // the first whose label is no class, or kNoRow
};

struct CrossEntropyArguments {
  Operand logits, gradient;
  const std::int32_t* labels;
  std::int64_t classes;
  float scale;
  LossOfRows* rows;  // [row]
};

struct LargestLogit {
  float value;
  std::int32_t index;  // of the first that large
};

struct LargerLogit {
  RANKLAB_HOST_DEVICE LargestLogit operator()(const LargestLogit& a, const LargestLogit& b) const {
    return a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b;
  }
};

template <typename Block>
RANKLAB_HOST_DEVICE LargestLogit LargestOfRow(const CrossEntropyArguments& a, std::int64_t begin,
                                              Block& block) {
  return block.template Reduce<LargestLogit>(
      [&](int thread, auto&) {
        LargestLogit largest = {-INFINITY, INT32_MAX};
        EachFour<Block>(thread, a.classes, [&](std::int64_t i, int count) {
          const Four x = LoadFour(a.logits, begin + i, count);
          for (int k = 0; k < count; ++k) {
            largest = LargerLogit{}(largest, {x.at[k], static_cast<std::int32_t>(i + k)});
          }
        });
        return largest;
      },
      LargerLogit{});
}

// A row that counts not, or cannot: its gradient is 0.
template <typename Block>
RANKLAB_HOST_DEVICE void RowWithoutLoss(const CrossEntropyArguments& a, Block& block) {
  const std::int64_t row = block.x();
  block.Each([&](int thread, auto&) {
    EachFour<Block>(thread, a.classes, [&](std::int64_t i, int count) {
      StoreFour(a.gradient, row * a.classes + i, Four{}, count);
    });
    if (thread == 0) {
      a.rows[row] = {0, 0, 0, a.labels[row] == kNoTarget ? kNoRow : row};
    }
  });
}

template <typename Block>
RANKLAB_HOST_DEVICE void CrossEntropyRow(const CrossEntropyArguments& a, Block& block) {
  const std::int64_t row = block.x();
  const std::int64_t begin = row * a.classes;
  const std::int32_t label = a.labels[row];
  if (label < 0 || label >= a.classes) {
    RowWithoutLoss(a, block);
    return;
  }
  const LargestLogit largest = LargestOfRow(a, begin, block);
  const float sum = block.template Reduce<float>(
      [&](int thread, auto&) {
        float mine = 0;
        EachFour<Block>(thread, a.classes, [&](std::int64_t i, int count) {
          const Four x = LoadFour(a.logits, begin + i, count);
          for (int k = 0; k < count; ++k) {
            mine += std::exp(x.at[k] - largest.value);
          }
        });
        return mine;
      },
      AddFloats{});
  const float of_label = Load(a.logits, begin + label);
  block.Each([&](int thread, auto&) {
    EachFour<Block>(thread, a.classes, [&](std::int64_t i, int count) {
      Four x = LoadFour(a.logits, begin + i, count);
      for (int k = 0; k < 4; ++k) {
        x.at[k] = std::exp(x.at[k] - largest.value) * (a.scale / sum);
        x.at[k] -= i + k == label ? a.scale : 0.0F;
      }
      StoreFour(a.gradient, begin + i, x, count);
    });
    if (thread == 0) {
      const double shifted = static_cast<double>(of_label) - static_cast<double>(largest.value);
      a.rows[row] = {std::log(static_cast<double>(sum)) - shifted, largest.index == label ? 1 : 0,
                     1, kNoRow};
    }
  });
}

struct AddLosses {
  RANKLAB_HOST_DEVICE LossOfRows operator()(const LossOfRows& a, const LossOfRows& b) const {
    return {a.loss + b.loss, a.correct + b.correct, a.targets + b.targets,
            a.bad_row < b.bad_row ? a.bad_row : b.bad_row};
  }
};

// One block: all = the sum over `count` rows.
template <typename Block>
RANKLAB_HOST_DEVICE void SumLosses(const LossOfRows* rows, std::int64_t count, LossOfRows* all,
                                   Block& block) {
  const LossOfRows sum = block.template Reduce<LossOfRows>(
      [&](int thread, auto&) {
        LossOfRows mine = {0, 0, 0, kNoRow};
        for (std::int64_t row = thread; row < count; row += Block::kThreads) {
          mine = AddLosses{}(mine, rows[row]);
        }
        return mine;
      },
      AddLosses{});
  block.Each([&](int thread, auto&) {
    if (thread == 0) {
      *all = sum;
    }
  });
}

}  // namespace ranklab::compute::cuda
