#include "compute/cpu_attention.h"

#include <algorithm>
#include <cmath>

#include "compute/cpu_gemm.h"
#include "compute/cpu_loops.h"
#include "core/status.h"

namespace ranklab::compute {
namespace {

constexpr std::int64_t kTile = 64;  // queries

float ScaleOf(const AttentionShape& shape) {
  return 1.0F / std::sqrt(static_cast<float>(shape.head_width()));
}

// Queries [begin, end) and the keys [0, end) that any of them sees.
struct Tile {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t queries() const { return end - begin; }
};

// Row `row` of a tile sees the keys up to its own; the weights behind them are 0.
void ClearFuture(const Tile& tile, std::int64_t row, float* weights) {
  std::fill(weights + tile.begin + row + 1, weights + tile.end, 0.0F);
}

// scores (queries, end) = q k^T.
absl::Status Scores(const AttentionShape& shape, const HeadPlace& head, const Tile& tile,
                    float* scores) {
  const std::int64_t stride = 3 * shape.hidden;
  return Gemm({.m = tile.queries(), .k = shape.head_width(), .n = tile.end},
              {.data = head.qkv + tile.begin * stride, .stride = stride},
              {.data = head.qkv + shape.hidden, .stride = stride, .transpose = true}, 0.0F, scores,
              tile.end);
}

absl::Status ForwardTile(const AttentionShape& shape, const HeadPlace& head, const Tile& tile,
                         float* scores) {
  RETURN_IF_ERROR(Scores(shape, head, tile, scores));
  for (std::int64_t row = 0; row < tile.queries(); ++row) {
    float* weights = scores + row * tile.end;
    head.log_sums[tile.begin + row] =
        loops::SoftmaxRow(weights, ScaleOf(shape), tile.begin + row + 1);
    ClearFuture(tile, row, weights);
  }
  return Gemm({.m = tile.queries(), .k = tile.end, .n = shape.head_width()},
              {.data = scores, .stride = tile.end},
              {.data = head.qkv + 2 * shape.hidden, .stride = 3 * shape.hidden}, 0.0F,
              head.out + tile.begin * shape.hidden, shape.hidden);
}

// `weights` and `dweights` are (queries, end). The last tile comes first: it writes dk and dv of
// every key, the others add to them.
absl::Status BackwardTile(const AttentionShape& shape, const HeadPlace& head,
                          const HeadPlace& gradients, const Tile& tile, float* weights,
                          float* dweights) {
  const std::int64_t width = shape.head_width();
  const std::int64_t stride = 3 * shape.hidden;
  const float beta = tile.end == shape.length ? 0.0F : 1.0F;
  const float* dout = gradients.out + tile.begin * shape.hidden;
  const float* out = head.out + tile.begin * shape.hidden;
  RETURN_IF_ERROR(Scores(shape, head, tile, weights));
  RETURN_IF_ERROR(Gemm({.m = tile.queries(), .k = width, .n = tile.end},
                       {.data = dout, .stride = shape.hidden},
                       {.data = head.qkv + 2 * shape.hidden, .stride = stride, .transpose = true},
                       0.0F, dweights, tile.end));
  for (std::int64_t row = 0; row < tile.queries(); ++row) {
    const std::int64_t seen = tile.begin + row + 1;
    float* w = weights + row * tile.end;
    float* dw = dweights + row * tile.end;
    loops::WeightsRow(w, ScaleOf(shape), head.log_sums[tile.begin + row], seen);
    // The sum over keys of weight x its gradient, without the weights.
    const float mean = loops::Dot(dout + row * shape.hidden, out + row * shape.hidden, width);
    loops::SoftmaxBackwardRow(w, dw, mean, ScaleOf(shape), seen);
    ClearFuture(tile, row, w);
    ClearFuture(tile, row, dw);
  }
  RETURN_IF_ERROR(Gemm({.m = tile.end, .k = tile.queries(), .n = width},
                       {.data = weights, .stride = tile.end, .transpose = true},
                       {.data = dout, .stride = shape.hidden}, beta,
                       gradients.qkv + 2 * shape.hidden, stride));
  RETURN_IF_ERROR(Gemm({.m = tile.end, .k = tile.queries(), .n = width},
                       {.data = dweights, .stride = tile.end, .transpose = true},
                       {.data = head.qkv + tile.begin * stride, .stride = stride}, beta,
                       gradients.qkv + shape.hidden, stride));
  return Gemm({.m = tile.queries(), .k = tile.end, .n = width},
              {.data = dweights, .stride = tile.end},
              {.data = head.qkv + shape.hidden, .stride = stride}, 0.0F,
              gradients.qkv + tile.begin * stride, stride);
}

}  // namespace

HeadPlace PlaceOf(const AttentionShape& shape, std::int64_t sample, std::int64_t head, float* qkv,
                  float* out, float* log_sums) {
  const std::int64_t row = sample * shape.length;
  const std::int64_t column = head * shape.head_width();
  return {.qkv = qkv + row * 3 * shape.hidden + column,
          .out = out + row * shape.hidden + column,
          .log_sums = log_sums + (sample * shape.heads + head) * shape.length};
}

absl::Status AttentionOfHead(const AttentionShape& shape, const HeadPlace& head,
                             std::vector<float>& scratch) {
  scratch.resize(static_cast<std::size_t>(std::min(kTile, shape.length) * shape.length));
  for (std::int64_t begin = 0; begin < shape.length; begin += kTile) {
    const Tile tile{begin, std::min(begin + kTile, shape.length)};
    RETURN_IF_ERROR(ForwardTile(shape, head, tile, scratch.data()));
  }
  return absl::OkStatus();
}

absl::Status AttentionBackwardOfHead(const AttentionShape& shape, const HeadPlace& head,
                                     const HeadPlace& gradients, std::vector<float>& scratch) {
  const std::int64_t size = std::min(kTile, shape.length) * shape.length;
  scratch.resize(static_cast<std::size_t>(2 * size));
  const std::int64_t tiles = (shape.length + kTile - 1) / kTile;
  for (std::int64_t i = tiles - 1; i >= 0; --i) {
    const Tile tile{i * kTile, std::min((i + 1) * kTile, shape.length)};
    RETURN_IF_ERROR(
        BackwardTile(shape, head, gradients, tile, scratch.data(), scratch.data() + size));
  }
  return absl::OkStatus();
}

}  // namespace ranklab::compute
