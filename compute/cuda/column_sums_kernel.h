// Sums over the rows of (rows, n), always in the same order: blocks sum a stretch of rows each,
// 128 columns wide, into `partial`, and AddPartialSums adds those up. A block's shared memory:
// kOutputs x kColumnSumsFloats.
#pragma once

#include <cstdint>

#include "compute/cuda/host_device.h"
#include "compute/cuda/storage.h"

namespace ranklab::compute::cuda {

inline constexpr int kColumnsOfBlock = 128;
inline constexpr int kLanesOfBlock = 8;  // rows at a time
inline constexpr int kColumnSumsThreads = kColumnsOfBlock / 4 * kLanesOfBlock;
inline constexpr int kColumnSumsFloats = kColumnsOfBlock * kLanesOfBlock;

struct ColumnSumsShape {
  std::int64_t rows, n;
  std::int64_t rows_of_block;
};

// values(row, column, count, sums): adds up to four columns' values to sums[0 .. kOutputs).
// partial (blocks in y, kOutputs, n). Block x takes the columns from 128 x on.
template <typename Values, typename Block>
RANKLAB_HOST_DEVICE void ColumnSums(const Values& values, const ColumnSumsShape& shape,
                                    float* partial, Block& block) {
  float* const shared = block.shared();
  const std::int64_t first_column = static_cast<std::int64_t>(block.x()) * kColumnsOfBlock;
  const std::int64_t first_row = block.y() * shape.rows_of_block;
  const std::int64_t end =
      first_row + shape.rows_of_block < shape.rows ? first_row + shape.rows_of_block : shape.rows;
  block.Each([&](int thread, auto&) {
    const int in_block = thread % (kColumnsOfBlock / 4) * 4;
    const int lane = thread / (kColumnsOfBlock / 4);
    const std::int64_t left = shape.n - first_column - in_block;
    const int count = left < 4 ? static_cast<int>(left) : 4;
    Four sums[Values::kOutputs] = {};
    for (std::int64_t row = first_row + lane; count > 0 && row < end; row += kLanesOfBlock) {
      values(row, first_column + in_block, count, sums);
    }
    for (int output = 0; output < Values::kOutputs; ++output) {
      for (int k = 0; k < 4; ++k) {
        shared[(output * kLanesOfBlock + lane) * kColumnsOfBlock + in_block + k] =
            sums[output].at[k];
      }
    }
  });
  block.Each([&](int thread, auto&) {
    const std::int64_t column = first_column + thread;
    if (thread >= kColumnsOfBlock || column >= shape.n) {
      return;
    }
    for (int output = 0; output < Values::kOutputs; ++output) {
      float sum = 0;
      for (int lane = 0; lane < kLanesOfBlock; ++lane) {
        sum += shared[(output * kLanesOfBlock + lane) * kColumnsOfBlock + thread];
      }
      partial[(static_cast<std::int64_t>(block.y()) * Values::kOutputs + output) * shape.n +
              column] = sum;
    }
  });
}

// Elementwise, one row: out (n) += the sum over parts of one output of partial (parts, outputs, n).
struct AddPartialSumsKernel {
  const float* partial;
  int parts, outputs, output;
  std::int64_t n;
  Operand out;

  RANKLAB_HOST_DEVICE void operator()(std::int64_t, std::int64_t column, int count) const {
    Four sums = LoadFour(out, column, count);
    for (int k = 0; k < count; ++k) {
      float sum = 0;
      for (int part = 0; part < parts; ++part) {
        sum += partial[(static_cast<std::int64_t>(part) * outputs + output) * n + column + k];
      }
      sums.at[k] += sum;
    }
    StoreFour(out, column, sums, count);
  }
};

// What AccumulateRowSums sums.
struct RowValues {
  static constexpr int kOutputs = 1;
  Operand x;
  std::int64_t n;

  RANKLAB_HOST_DEVICE void operator()(std::int64_t row, std::int64_t column, int count,
                                      Four* sums) const {
    const Four values = LoadFour(x, row * n + column, count);
    for (int k = 0; k < 4; ++k) {
      sums[0].at[k] += values.at[k];
    }
  }
};

}  // namespace ranklab::compute::cuda
