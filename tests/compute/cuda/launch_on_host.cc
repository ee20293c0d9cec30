// launch.h and stream_memory.h on the host: every kernel is run by blocks whose threads take turns.
#include <cstdlib>
#include <cstring>

#include "compute/cuda/attention_kernel.h"
#include "compute/cuda/launch.h"
#include "compute/cuda/stream_memory.h"
#include "compute/cuda/sum_kernel.h"
#include "core/check.h"
#include "core/status.h"
#include "tests/compute/cuda/host_block.h"

namespace ranklab::compute::cuda {
namespace {

template <typename Kernel>
int OverElements(const Kernel& kernel, const Extent& extent) {
  for (std::int64_t row = 0; row < extent.rows; ++row) {
    for (std::int64_t column = 0; column < extent.n; column += 4) {
      kernel(row, column, extent.n - column < 4 ? static_cast<int>(extent.n - column) : 4);
    }
  }
  return 0;
}

int Count(std::int64_t count) { return static_cast<int>(count); }

template <typename Values>
int SumColumns(const Values& values, const ColumnSumsShape& shape, float* partial) {
  RunOnHost<kColumnSumsThreads>(
      {Count((shape.n + kColumnsOfBlock - 1) / kColumnsOfBlock),
       Count((shape.rows + shape.rows_of_block - 1) / shape.rows_of_block), 1},
      Values::kOutputs * kColumnSumsFloats,
      [&](auto& block) { ColumnSums(values, shape, partial, block); });
  return 0;
}

BlockPlace TilesOf(const AttentionArguments& arguments, std::int64_t samples) {
  return {arguments.tiles(), Count(arguments.heads), Count(samples)};
}

}  // namespace

int Launch(const AddBiasKernel& kernel, const Extent& extent, Stream) {
  return OverElements(kernel, extent);
}
int Launch(const AddBiasGeluKernel& kernel, const Extent& extent, Stream) {
  return OverElements(kernel, extent);
}
int Launch(const AddBiasResidualKernel& kernel, const Extent& extent, Stream) {
  return OverElements(kernel, extent);
}
int Launch(const ReluBackwardKernel& kernel, const Extent& extent, Stream) {
  return OverElements(kernel, extent);
}
int Launch(const GeluBackwardKernel& kernel, const Extent& extent, Stream) {
  return OverElements(kernel, extent);
}
int Launch(const ConvertKernel& kernel, const Extent& extent, Stream) {
  return OverElements(kernel, extent);
}
int Launch(const SgdKernel& kernel, const Extent& extent, Stream) {
  return OverElements(kernel, extent);
}
int Launch(const MomentumKernel& kernel, const Extent& extent, Stream) {
  return OverElements(kernel, extent);
}
int Launch(const AdamWKernel& kernel, const Extent& extent, Stream) {
  return OverElements(kernel, extent);
}
int Launch(const AddPartialSumsKernel& kernel, const Extent& extent, Stream) {
  return OverElements(kernel, extent);
}
int Launch(const EmbedTokensKernel& kernel, const Extent& extent, Stream) {
  return OverElements(kernel, extent);
}
int Launch(const PositionGradientsKernel& kernel, const Extent& extent, Stream) {
  return OverElements(kernel, extent);
}
int Launch(const AttentionMeansKernel& kernel, const Extent& extent, Stream) {
  return OverElements(kernel, extent);
}

int LaunchColumnSums(const RowValues& values, const ColumnSumsShape& shape, float* partial,
                     Stream) {
  return SumColumns(values, shape, partial);
}
int LaunchColumnSums(const LayerNormGradientValues& values, const ColumnSumsShape& shape,
                     float* partial, Stream) {
  return SumColumns(values, shape, partial);
}

int LaunchLayerNorm(const LayerNormArguments& arguments, std::int64_t rows, Stream) {
  RunOnHost<kLayerNormThreads>({Count(rows), 1, 1}, 0,
                               [&](auto& block) { LayerNormRow(arguments, block); });
  return 0;
}

int LaunchLayerNormBackward(const LayerNormBackwardArguments& arguments, std::int64_t rows,
                            Stream) {
  RunOnHost<kLayerNormThreads>({Count(rows), 1, 1}, 0,
                               [&](auto& block) { LayerNormBackwardRow(arguments, block); });
  return 0;
}

int LaunchCrossEntropy(const CrossEntropyArguments& arguments, std::int64_t rows, LossOfRows* all,
                       Stream) {
  RunOnHost<kCrossEntropyThreads>({Count(rows), 1, 1}, 0,
                                  [&](auto& block) { CrossEntropyRow(arguments, block); });
  RunOnHost<kSumThreads>({1, 1, 1}, 0,
                         [&](auto& block) { SumLosses(arguments.rows, rows, all, block); });
  return 0;
}

int LaunchFindBadToken(const std::int32_t* tokens, std::int64_t count, std::int64_t vocabulary,
                       std::int64_t* first, Stream) {
  RunOnHost<kEmbeddingThreads>(
      {1, 1, 1}, 0, [&](auto& block) { FindBadToken(tokens, count, vocabulary, first, block); });
  return 0;
}

int LaunchGatherTokenGradients(const TokenGradientsArguments& arguments, std::int64_t vocabulary,
                               Stream) {
  const std::int64_t blocks = (arguments.hidden + kEmbeddingThreads - 1) / kEmbeddingThreads;
  RunOnHost<kEmbeddingThreads, GatheredSum>(
      {Count(vocabulary), Count(blocks), 1}, kEmbeddingThreads,
      [&](auto& block) { GatherTokenGradients(arguments, block); });
  return 0;
}

int LaunchSumOfSquares(const Operand& x, std::int64_t count, double* parts, double* all, Stream) {
  constexpr int kBlocks = 3;
  RunOnHost<kSumThreads>({kBlocks, 1, 1}, 0,
                         [&](auto& block) { SquaresOfPart(x, count, kBlocks, parts, block); });
  RunOnHost<kSumThreads>({1, 1, 1}, 0, [&](auto& block) { SumParts(parts, kBlocks, all, block); });
  return 0;
}

int LaunchAttention(const AttentionArguments& arguments, std::int64_t samples, Stream) {
  RunOnHost<kAttentionThreads>(TilesOf(arguments, samples), ForwardFloats(arguments),
                               [&](auto& block) { AttentionForward(arguments, block); });
  return 0;
}

int LaunchAttentionBackward(const AttentionArguments& arguments, std::int64_t samples,
                            Stream stream) {
  Launch(AttentionMeansKernel{arguments}, {samples * arguments.length, arguments.heads}, stream);
  RunOnHost<kAttentionThreads, QueryGradientState>(
      TilesOf(arguments, samples), QueryGradientFloats(arguments),
      [&](auto& block) { AttentionQueryGradient(arguments, block); });
  RunOnHost<kAttentionThreads>(TilesOf(arguments, samples), KeyGradientFloats(arguments),
                               [&](auto& block) { AttentionKeyGradient(arguments, block); });
  return 0;
}

std::int64_t AttentionSharedBytes(std::int64_t width) {
  AttentionArguments arguments{};
  arguments.width = width;
  return KeyGradientFloats(arguments) * static_cast<std::int64_t>(sizeof(float));
}

// Memory that nobody has written holds NaN.
int AllocateOn(Stream, Bytes size, void** memory) {
  *memory = std::malloc(static_cast<std::size_t>(size));
  std::memset(*memory, 0xFF, static_cast<std::size_t>(size));
  return 0;
}

int FreeOn(Stream, void* memory) {
  std::free(memory);
  return 0;
}

int ClearOn(Stream, void* memory, Bytes size) {
  std::memset(memory, 0, static_cast<std::size_t>(size));
  return 0;
}

int CopyIn(Stream, const void* host, void* memory, Bytes size) {
  std::memcpy(memory, host, static_cast<std::size_t>(size));
  return 0;
}

int CopyOut(Stream, const void* memory, void* host, Bytes size) {
  std::memcpy(host, memory, static_cast<std::size_t>(size));
  return 0;
}

absl::Status StatusOf(int error, std::string_view) {
  RANKLAB_CHECK(error == 0, "kernels on the host do not fail");
  return absl::OkStatus();
}

}  // namespace ranklab::compute::cuda
