// Token and position embedding, and what goes back to both tables: every row of a table gathers its
// gradients itself, in the order of the tokens, so that nothing is added by two threads at once.
#pragma once

#include <cstdint>

#include "compute/cuda/host_device.h"
#include "compute/cuda/storage.h"

namespace ranklab::compute::cuda {

inline constexpr int kEmbeddingThreads = 256;
inline constexpr std::int64_t kNoToken = INT64_MAX;

struct SmallerIndex {
  RANKLAB_HOST_DEVICE std::int64_t operator()(std::int64_t a, std::int64_t b) const {
    return a < b ? a : b;
  }
};

// One block: first = the place of the first token that is none of `vocabulary`, or kNoToken.
template <typename Block>
RANKLAB_HOST_DEVICE void FindBadToken(const std::int32_t* tokens, std::int64_t count,
                                      std::int64_t vocabulary, std::int64_t* first, Block& block) {
  const std::int64_t found = block.template Reduce<std::int64_t>(
      [&](int thread, auto&) {
        for (std::int64_t i = thread; i < count; i += Block::kThreads) {
          if (tokens[i] < 0 || tokens[i] >= vocabulary) {
            return i;
          }
        }
        return kNoToken;
      },
      SmallerIndex{});
  block.Each([&](int thread, auto&) {
    if (thread == 0) {
      *first = found;
    }
  });
}

// Elementwise over out (count, hidden).
struct EmbedTokensKernel {
  const std::int32_t* tokens;
  Operand table, positions, out;
  std::int64_t length, hidden;

  RANKLAB_HOST_DEVICE void operator()(std::int64_t row, std::int64_t column, int count) const {
    Four sums = LoadFour(table, tokens[row] * hidden + column, count);
    const Four places = LoadFour(positions, row % length * hidden + column, count);
    for (int k = 0; k < 4; ++k) {
      sums.at[k] += places.at[k];
    }
    StoreFour(out, row * hidden + column, sums, count);
  }
};

struct TokenGradientsArguments {
  const std::int32_t* tokens;
  std::int64_t count;  // of tokens
  Operand dout, dtable;
  std::int64_t hidden;
};

// Block x is row x of the table, block y 256 of its columns. Shared memory: a token a thread.
template <typename Block>
RANKLAB_HOST_DEVICE void GatherTokenGradients(const TokenGradientsArguments& a, Block& block) {
  auto* const stretch = reinterpret_cast<std::int32_t*>(block.shared());
  const std::int64_t token = block.x();
  block.Each([&](int, auto& sum) { sum.value = 0; });
  for (std::int64_t begin = 0; begin < a.count; begin += Block::kThreads) {
    const std::int64_t left = a.count - begin;
    const int size = left < Block::kThreads ? static_cast<int>(left) : Block::kThreads;
    block.Each([&](int thread, auto&) {
      if (thread < size) {
        stretch[thread] = a.tokens[begin + thread];
      }
    });
    block.Each([&](int thread, auto& sum) {
      const std::int64_t column = static_cast<std::int64_t>(block.y()) * Block::kThreads + thread;
      for (int i = 0; i < size && column < a.hidden; ++i) {
        if (stretch[i] == token) {
          sum.value += Load(a.dout, (begin + i) * a.hidden + column);
        }
      }
    });
  }
  block.Each([&](int thread, auto& sum) {
    const std::int64_t column = static_cast<std::int64_t>(block.y()) * Block::kThreads + thread;
    if (column < a.hidden) {
      const std::int64_t i = token * a.hidden + column;
      Store(a.dtable, i, Load(a.dtable, i) + sum.value);
    }
  });
}
struct GatheredSum {
  float value;
};

// Elementwise over the first `length` rows of dpositions: sums over the samples.
struct PositionGradientsKernel {
  Operand dout, dpositions;
  std::int64_t samples, length, hidden;

  RANKLAB_HOST_DEVICE void operator()(std::int64_t row, std::int64_t column, int count) const {
    Four sums = LoadFour(dpositions, row * hidden + column, count);
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      const Four values = LoadFour(dout, (sample * length + row) * hidden + column, count);
      for (int k = 0; k < 4; ++k) {
        sums.at[k] += values.at[k];
      }
    }
    StoreFour(dpositions, row * hidden + column, sums, count);
  }
};

}  // namespace ranklab::compute::cuda
