// Causal attention of one head of one sample, by tiles of 32 queries and 32 keys in shared memory:
// what its kernels share. No (length, length) matrix exists. Everything is computed in float32,
// without tensor cores.
#pragma once

#include <cstdint>

#include "compute/cuda/host_device.h"
#include "compute/cuda/storage.h"

namespace ranklab::compute::cuda {

inline constexpr int kTile = 32;              // queries, and keys
inline constexpr int kAttentionThreads = 64;  // 8 x 8, each with 4 x 4 elements of a product
inline constexpr int kThreadRows = 8;
inline constexpr int kScoreStride = kTile + 1;  // against bank conflicts, as below

// Block x is a tile, y a head, z a sample.
struct AttentionArguments {
  Operand qkv, out;                   // (samples, length, 3 hidden), (samples, length, hidden)
  float* log_sums;                    // (samples, heads, length)
  std::int64_t length, heads, width;  // width of a head
  float scale;                        // of the scores
  // Of the backward pass.
  Operand dout{}, dqkv{};
  float* means = nullptr;  // (samples, heads, length): the sum of dout x out over the width

  RANKLAB_HOST_DEVICE int tiles() const { return static_cast<int>((length + kTile - 1) / kTile); }
  RANKLAB_HOST_DEVICE int padded() const {
    return static_cast<int>((width + kTile - 1) / kTile) * kTile;
  }
  RANKLAB_HOST_DEVICE int stride() const { return padded() + 1; }  // of a tile's rows
  RANKLAB_HOST_DEVICE int tile_floats() const { return kTile * stride(); }
};

// Where the block's head of its sample begins: part 0, 1, 2 of qkv are queries, keys, values.
struct HeadPlaces {
  std::int64_t qkv, out, statistics;
  std::int64_t hidden;
  RANKLAB_HOST_DEVICE std::int64_t Part(int part) const { return qkv + part * hidden; }
};

template <typename Block>
RANKLAB_HOST_DEVICE HeadPlaces PlacesOf(const AttentionArguments& a, const Block& block) {
  const std::int64_t sample = block.z();
  const std::int64_t head = block.y();
  const std::int64_t hidden = a.heads * a.width;
  return {sample * a.length * 3 * hidden + head * a.width,
          sample * a.length * hidden + head * a.width, (sample * a.heads + head) * a.length,
          hidden};
}

// Rows [first, first + kTile) of a head, `row_stride` elements apart in `from`; 0 outside of it.
struct TilePlace {
  std::int64_t begin, row_stride, first;
};

// f(row, i) on a thread's share of a tile of which the width counts.
template <typename F>
RANKLAB_HOST_DEVICE void EachOfTile(const AttentionArguments& a, int thread, F f) {
  for (int row = thread / kTile; row < kTile; row += kAttentionThreads / kTile) {
    for (int i = thread % kTile; i < a.width; i += kTile) {
      f(row, i);
    }
  }
}

RANKLAB_HOST_DEVICE inline void LoadTile(const AttentionArguments& a, int thread,
                                         const Operand& from, const TilePlace& place, float* tile) {
  for (int row = thread / kTile; row < kTile; row += kAttentionThreads / kTile) {
    const std::int64_t position = place.first + row;
    for (int i = thread % kTile; i < a.padded(); i += kTile) {
      const bool inside = position < a.length && i < a.width;
      tile[row * a.stride() + i] =
          inside ? Load(from, place.begin + position * place.row_stride + i) : 0.0F;
    }
  }
}

RANKLAB_HOST_DEVICE inline void StoreTile(const AttentionArguments& a, int thread,
                                          const float* tile, const TilePlace& place,
                                          const Operand& to) {
  EachOfTile(a, thread, [&](int row, int i) {
    const std::int64_t position = place.first + row;
    if (position < a.length) {
      Store(to, place.begin + position * place.row_stride + i, tile[row * a.stride() + i]);
    }
  });
}

RANKLAB_HOST_DEVICE inline void ClearTile(const AttentionArguments& a, int thread, float* tile) {
  for (int i = thread; i < a.tile_floats(); i += kAttentionThreads) {
    tile[i] = 0.0F;
  }
}

// A matrix in shared memory, or its transpose.
struct Matrix {
  const float* data;
  int row, column;  // distance of neighbours in a column, in a row
};

// A thread's 4 x 4 elements of a (32, depth) x b (depth, 32). They lie 8 apart, so that the eight
// threads of a row read neighbours, or rows an odd number apart: different banks both.
struct MicroTile {
  float at[4][4];
};
RANKLAB_HOST_DEVICE inline int MicroRow(int thread, int i) {
  return thread / kThreadRows + kThreadRows * i;
}
RANKLAB_HOST_DEVICE inline int MicroColumn(int thread, int j) {
  return thread % kThreadRows + kThreadRows * j;
}

RANKLAB_HOST_DEVICE inline MicroTile Multiply(int thread, const Matrix& a, const Matrix& b,
                                              int depth) {
  MicroTile sums = {};
  for (int k = 0; k < depth; ++k) {
    float left[4];
    float right[4];
    for (int i = 0; i < 4; ++i) {
      left[i] = a.data[MicroRow(thread, i) * a.row + k * a.column];
      right[i] = b.data[k * b.row + MicroColumn(thread, i) * b.column];
    }
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        sums.at[i][j] += left[i] * right[j];
      }
    }
  }
  return sums;
}

// to (32, padded) = to x shrink of its row + weights (32, 32) x tile (32, padded).
RANKLAB_HOST_DEVICE inline void AddProduct(const AttentionArguments& a, int thread,
                                           const Matrix& weights, const float* tile,
                                           const float* shrink, float* to) {
  for (int first = 0; first < a.padded(); first += kTile) {
    const MicroTile product = Multiply(thread, weights, {tile + first, a.stride(), 1}, kTile);
    for (int i = 0; i < 4; ++i) {
      const int row = MicroRow(thread, i);
      const float keep = shrink == nullptr ? 1.0F : shrink[row];
      for (int j = 0; j < 4; ++j) {
        float& sum = to[row * a.stride() + first + MicroColumn(thread, j)];
        sum = sum * keep + product.at[i][j];
      }
    }
  }
}

// Does the query see the key? Both within the sequence.
RANKLAB_HOST_DEVICE inline bool Sees(const AttentionArguments& a, std::int64_t query,
                                     std::int64_t key) {
  return key <= query && query < a.length;
}

}  // namespace ranklab::compute::cuda
