// The backward pass of attention: two kernels, one that gathers over keys and one that gathers over
// queries, so that no sum has two writers and its order is always the same. The weights are made
// again from the forward pass's log_sums. Source: Dao et al., "FlashAttention", 2022.
#pragma once

#include <cmath>
#include <cstdint>

#include "compute/cuda/attention_tiles.h"
#include "compute/cuda/host_device.h"
#include "compute/cuda/storage.h"

namespace ranklab::compute::cuda {

RANKLAB_HOST_DEVICE inline int QueryGradientFloats(const AttentionArguments& a) {
  return 4 * a.tile_floats() + kTile * kScoreStride;
}
RANKLAB_HOST_DEVICE inline int KeyGradientFloats(const AttentionArguments& a) {
  return 6 * a.tile_floats() + 2 * kTile * kScoreStride;
}

// Elementwise over (samples length, heads): means.
struct AttentionMeansKernel {
  AttentionArguments a;

  RANKLAB_HOST_DEVICE void operator()(std::int64_t row, std::int64_t first, int count) const {
    const std::int64_t sample = row / a.length;
    for (std::int64_t head = first; head < first + count; ++head) {
      const std::int64_t begin = (row * a.heads + head) * a.width;
      float sum = 0;
      for (std::int64_t i = begin; i < begin + a.width; ++i) {
        sum += Load(a.dout, i) * Load(a.out, i);
      }
      a.means[(sample * a.heads + head) * a.length + row % a.length] = sum;
    }
  }
};

// The weight of a key for a query, made again, and the gradient of its score.
struct ScoreGradient {
  float weight, gradient;
};
RANKLAB_HOST_DEVICE inline ScoreGradient ScoreGradientOf(const AttentionArguments& a,
                                                         const HeadPlaces& places,
                                                         std::int64_t query, std::int64_t key,
                                                         float product, float dweight) {
  if (!Sees(a, query, key)) {
    return {0.0F, 0.0F};
  }
  const float weight = std::exp(a.scale * product - a.log_sums[places.statistics + query]);
  return {weight, a.scale * weight * (dweight - a.means[places.statistics + query])};
}

// What a thread keeps between phases.
struct QueryGradientState {
  MicroTile dweights;
};

// The gradient of a tile of queries: over the keys that they see.
template <typename Block>
RANKLAB_HOST_DEVICE void AttentionQueryGradient(const AttentionArguments& a, Block& block) {
  float* const q = block.shared();
  float* const dout = q + a.tile_floats();
  float* const kv = dout + a.tile_floats();  // values, then keys
  float* const dq = kv + a.tile_floats();
  float* const dscores = dq + a.tile_floats();
  const HeadPlaces places = PlacesOf(a, block);
  const int own = a.tiles() - 1 - block.x();  // the longest first
  const std::int64_t first = static_cast<std::int64_t>(own) * kTile;
  block.Each([&](int thread, auto&) {
    LoadTile(a, thread, a.qkv, {places.Part(0), 3 * places.hidden, first}, q);
    LoadTile(a, thread, a.dout, {places.out, places.hidden, first}, dout);
    ClearTile(a, thread, dq);
  });
  for (int tile = 0; tile <= own; ++tile) {
    const std::int64_t key = static_cast<std::int64_t>(tile) * kTile;
    block.Each([&](int thread, auto&) {
      LoadTile(a, thread, a.qkv, {places.Part(2), 3 * places.hidden, key}, kv);
    });
    block.Each([&](int thread, auto& state) {
      state.dweights = Multiply(thread, {dout, a.stride(), 1}, {kv, 1, a.stride()}, a.padded());
    });
    block.Each([&](int thread, auto&) {
      LoadTile(a, thread, a.qkv, {places.Part(1), 3 * places.hidden, key}, kv);
    });
    block.Each([&](int thread, auto& state) {
      const MicroTile product =
          Multiply(thread, {q, a.stride(), 1}, {kv, 1, a.stride()}, a.padded());
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
          const int row = MicroRow(thread, i);
          const int column = MicroColumn(thread, j);
          dscores[row * kScoreStride + column] =
              ScoreGradientOf(a, places, first + row, key + column, product.at[i][j],
                              state.dweights.at[i][j])
                  .gradient;
        }
      }
    });
    block.Each([&](int thread, auto&) {
      AddProduct(a, thread, {dscores, kScoreStride, 1}, kv, nullptr, dq);
    });
  }
  block.Each([&](int thread, auto&) {
    StoreTile(a, thread, dq, {places.Part(0), 3 * places.hidden, first}, a.dqkv);
  });
}

// The gradients of a tile of keys and their values: over the queries that see them.
template <typename Block>
RANKLAB_HOST_DEVICE void AttentionKeyGradient(const AttentionArguments& a, Block& block) {
  float* const k = block.shared();
  float* const v = k + a.tile_floats();
  float* const q = v + a.tile_floats();
  float* const dout = q + a.tile_floats();
  float* const dk = dout + a.tile_floats();
  float* const dv = dk + a.tile_floats();
  float* const weights = dv + a.tile_floats();
  float* const dscores = weights + kTile * kScoreStride;
  const HeadPlaces places = PlacesOf(a, block);
  const std::int64_t first = static_cast<std::int64_t>(block.x()) * kTile;
  block.Each([&](int thread, auto&) {
    LoadTile(a, thread, a.qkv, {places.Part(1), 3 * places.hidden, first}, k);
    LoadTile(a, thread, a.qkv, {places.Part(2), 3 * places.hidden, first}, v);
    ClearTile(a, thread, dk);
    ClearTile(a, thread, dv);
  });
  for (int tile = block.x(); tile < a.tiles(); ++tile) {
    const std::int64_t query = static_cast<std::int64_t>(tile) * kTile;
    block.Each([&](int thread, auto&) {
      LoadTile(a, thread, a.qkv, {places.Part(0), 3 * places.hidden, query}, q);
      LoadTile(a, thread, a.dout, {places.out, places.hidden, query}, dout);
    });
    block.Each([&](int thread, auto&) {
      const MicroTile product =
          Multiply(thread, {q, a.stride(), 1}, {k, 1, a.stride()}, a.padded());
      const MicroTile dweights =
          Multiply(thread, {dout, a.stride(), 1}, {v, 1, a.stride()}, a.padded());
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
          const int row = MicroRow(thread, i);
          const int column = MicroColumn(thread, j);
          const ScoreGradient score = ScoreGradientOf(a, places, query + row, first + column,
                                                      product.at[i][j], dweights.at[i][j]);
          weights[row * kScoreStride + column] = score.weight;
          dscores[row * kScoreStride + column] = score.gradient;
        }
      }
    });
    block.Each([&](int thread, auto&) {
      AddProduct(a, thread, {weights, 1, kScoreStride}, dout, nullptr, dv);
      AddProduct(a, thread, {dscores, 1, kScoreStride}, q, nullptr, dk);
    });
  }
  block.Each([&](int thread, auto&) {
    StoreTile(a, thread, dk, {places.Part(1), 3 * places.hidden, first}, a.dqkv);
    StoreTile(a, thread, dv, {places.Part(2), 3 * places.hidden, first}, a.dqkv);
  });
}

}  // namespace ranklab::compute::cuda
