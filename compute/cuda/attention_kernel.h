// The forward pass of attention: a block a tile of queries, which walks over the keys that they
// see. Source: Dao et al., "FlashAttention", 2022; Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018.
#pragma once

#include <cmath>
#include <cstdint>

#include "compute/cuda/attention_tiles.h"
#include "compute/cuda/host_device.h"
#include "compute/cuda/storage.h"

namespace ranklab::compute::cuda {

// Half of a row of scores: two threads share a row.
struct HalfRow {
  int row, half;
  RANKLAB_HOST_DEVICE explicit HalfRow(int thread) : row(thread / 2), half(thread % 2) {}
  RANKLAB_HOST_DEVICE float* of(float* scores) const {
    return scores + row * kScoreStride + half * (kTile / 2);
  }
};

RANKLAB_HOST_DEVICE inline int ForwardFloats(const AttentionArguments& a) {
  return 3 * a.tile_floats() + kTile * kScoreStride + 4 * kTile + 2 * kAttentionThreads;
}

// A block's shared memory, and what its threads do with it between two barriers.
struct ForwardTile {
  float* q;
  float* kv;  // keys, then values
  float* sums_of_values;
  float* scores;        // then weights
  float* largest;       // [query], of the scores seen so far
  float* next_largest;  // [query]
  float* sums;          // [query], of exp(score - largest)
  float* shrink;        // [query], exp(largest - next_largest)
  float* half_largest;  // [thread]
  float* half_sums;     // [thread]

  RANKLAB_HOST_DEVICE ForwardTile(const AttentionArguments& a, float* shared)
      : q(shared),
        kv(q + a.tile_floats()),
        sums_of_values(kv + a.tile_floats()),
        scores(sums_of_values + a.tile_floats()),
        largest(scores + kTile * kScoreStride),
        next_largest(largest + kTile),
        sums(next_largest + kTile),
        shrink(sums + kTile),
        half_largest(shrink + kTile),
        half_sums(half_largest + kAttentionThreads) {}

  RANKLAB_HOST_DEVICE void Clear(const AttentionArguments& a, int thread) const {
    ClearTile(a, thread, sums_of_values);
    if (thread < kTile) {
      largest[thread] = -INFINITY;
      sums[thread] = 0.0F;
    }
  }

  // A query behind the sequence sees all keys before it, so that no row is without any.
  RANKLAB_HOST_DEVICE void Score(const AttentionArguments& a, int thread, std::int64_t query,
                                 std::int64_t key) const {
    const MicroTile product = Multiply(thread, {q, a.stride(), 1}, {kv, 1, a.stride()}, a.padded());
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        const int row = MicroRow(thread, i);
        const int column = MicroColumn(thread, j);
        scores[row * kScoreStride + column] =
            key + column <= query + row ? a.scale * product.at[i][j] : -INFINITY;
      }
    }
  }

  RANKLAB_HOST_DEVICE void FindHalfLargest(int thread) const {
    const float* mine = HalfRow(thread).of(scores);
    float most = -INFINITY;
    for (int i = 0; i < kTile / 2; ++i) {
      most = mine[i] > most ? mine[i] : most;
    }
    half_largest[thread] = most;
  }

  RANKLAB_HOST_DEVICE void Weigh(int thread) const {
    const HalfRow place(thread);
    float most = largest[place.row];
    most = half_largest[2 * place.row] > most ? half_largest[2 * place.row] : most;
    most = half_largest[2 * place.row + 1] > most ? half_largest[2 * place.row + 1] : most;
    float* const mine = place.of(scores);
    float sum = 0;
    for (int i = 0; i < kTile / 2; ++i) {
      mine[i] = std::exp(mine[i] - most);
      sum += mine[i];
    }
    half_sums[thread] = sum;
    if (place.half == 0) {
      next_largest[place.row] = most;
      shrink[place.row] = std::exp(largest[place.row] - most);
    }
  }

  RANKLAB_HOST_DEVICE void AddValues(const AttentionArguments& a, int thread) const {
    if (thread < kTile) {
      largest[thread] = next_largest[thread];
      sums[thread] =
          sums[thread] * shrink[thread] + half_sums[2 * thread] + half_sums[2 * thread + 1];
    }
    AddProduct(a, thread, {scores, kScoreStride, 1}, kv, shrink, sums_of_values);
  }
};

template <typename Block>
RANKLAB_HOST_DEVICE void AttentionForward(const AttentionArguments& a, Block& block) {
  const ForwardTile tile(a, block.shared());
  const HeadPlaces places = PlacesOf(a, block);
  const int own = a.tiles() - 1 - block.x();  // the longest first
  const std::int64_t first = static_cast<std::int64_t>(own) * kTile;
  block.Each([&](int thread, auto&) {
    LoadTile(a, thread, a.qkv, {places.Part(0), 3 * places.hidden, first}, tile.q);
    tile.Clear(a, thread);
  });
  for (int other = 0; other <= own; ++other) {
    const std::int64_t key = static_cast<std::int64_t>(other) * kTile;
    block.Each([&](int thread, auto&) {
      LoadTile(a, thread, a.qkv, {places.Part(1), 3 * places.hidden, key}, tile.kv);
    });
    block.Each([&](int thread, auto&) { tile.Score(a, thread, first, key); });
    block.Each([&](int thread, auto&) {
      LoadTile(a, thread, a.qkv, {places.Part(2), 3 * places.hidden, key}, tile.kv);
      tile.FindHalfLargest(thread);
    });
    block.Each([&](int thread, auto&) { tile.Weigh(thread); });
    block.Each([&](int thread, auto&) { tile.AddValues(a, thread); });
  }
  block.Each([&](int thread, auto&) {
    if (thread < kTile && first + thread < a.length) {
      a.log_sums[places.statistics + first + thread] =
          tile.largest[thread] + std::log(tile.sums[thread]);
    }
    EachOfTile(a, thread, [&](int row, int i) {
      if (first + row < a.length) {
        Store(a.out, places.out + (first + row) * places.hidden + i,
              tile.sums_of_values[row * a.stride() + i] / tile.sums[row]);
      }
    });
  });
}

}  // namespace ranklab::compute::cuda
