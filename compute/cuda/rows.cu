#include <algorithm>

#include <cuda_runtime.h>

#include "compute/cuda/block.h"
#include "compute/cuda/launch.h"
#include "compute/cuda/sum_kernel.h"

namespace ranklab::compute::cuda {
namespace {

cudaStream_t On(Stream stream) { return static_cast<cudaStream_t>(stream); }

template <typename Values>
__global__ void ColumnSumsOnDevice(Values values, ColumnSumsShape shape, float* partial) {
  Block<kColumnSumsThreads> block;
  ColumnSums(values, shape, partial, block);
}

template <typename Values>
int LaunchSums(const Values& values, const ColumnSumsShape& shape, float* partial, Stream stream) {
  if (shape.rows == 0 || shape.n == 0) {
    return cudaSuccess;
  }
  const dim3 blocks(
      static_cast<unsigned>((shape.n + kColumnsOfBlock - 1) / kColumnsOfBlock),
      static_cast<unsigned>((shape.rows + shape.rows_of_block - 1) / shape.rows_of_block));
  const std::size_t shared = Values::kOutputs * kColumnSumsFloats * sizeof(float);
  ColumnSumsOnDevice<<<blocks, kColumnSumsThreads, shared, On(stream)>>>(values, shape, partial);
  return cudaGetLastError();
}

__global__ void LayerNormOnDevice(LayerNormArguments arguments) {
  Block<kLayerNormThreads> block;
  LayerNormRow(arguments, block);
}

__global__ void LayerNormBackwardOnDevice(LayerNormBackwardArguments arguments) {
  Block<kLayerNormThreads> block;
  LayerNormBackwardRow(arguments, block);
}

__global__ void CrossEntropyOnDevice(CrossEntropyArguments arguments) {
  Block<kCrossEntropyThreads> block;
  CrossEntropyRow(arguments, block);
}

__global__ void SumLossesOnDevice(const LossOfRows* rows, std::int64_t count, LossOfRows* all) {
  Block<kSumThreads> block;
  SumLosses(rows, count, all, block);
}

__global__ void FindBadTokenOnDevice(const std::int32_t* tokens, std::int64_t count,
                                     std::int64_t vocabulary, std::int64_t* first) {
  Block<kEmbeddingThreads> block;
  FindBadToken(tokens, count, vocabulary, first, block);
}

__global__ void GatherTokenGradientsOnDevice(TokenGradientsArguments arguments) {
  Block<kEmbeddingThreads, GatheredSum> block;
  GatherTokenGradients(arguments, block);
}

__global__ void SquaresOnDevice(Operand x, std::int64_t count, int blocks, double* parts) {
  Block<kSumThreads> block;
  SquaresOfPart(x, count, blocks, parts, block);
}

__global__ void SumPartsOnDevice(const double* parts, int count, double* all) {
  Block<kSumThreads> block;
  SumParts(parts, count, all, block);
}

}  // namespace

int LaunchColumnSums(const RowValues& values, const ColumnSumsShape& shape, float* partial,
                     Stream stream) {
  return LaunchSums(values, shape, partial, stream);
}

int LaunchColumnSums(const LayerNormGradientValues& values, const ColumnSumsShape& shape,
                     float* partial, Stream stream) {
  return LaunchSums(values, shape, partial, stream);
}

int LaunchLayerNorm(const LayerNormArguments& arguments, std::int64_t rows, Stream stream) {
  if (rows > 0) {
    LayerNormOnDevice<<<static_cast<unsigned>(rows), kLayerNormThreads, 0, On(stream)>>>(arguments);
  }
  return cudaGetLastError();
}

int LaunchLayerNormBackward(const LayerNormBackwardArguments& arguments, std::int64_t rows,
                            Stream stream) {
  if (rows > 0) {
    LayerNormBackwardOnDevice<<<static_cast<unsigned>(rows), kLayerNormThreads, 0, On(stream)>>>(
        arguments);
  }
  return cudaGetLastError();
}

int LaunchCrossEntropy(const CrossEntropyArguments& arguments, std::int64_t rows, LossOfRows* all,
                       Stream stream) {
  if (rows > 0) {
    CrossEntropyOnDevice<<<static_cast<unsigned>(rows), kCrossEntropyThreads, 0, On(stream)>>>(
        arguments);
  }
  SumLossesOnDevice<<<1, kSumThreads, 0, On(stream)>>>(arguments.rows, rows, all);
  return cudaGetLastError();
}

int LaunchFindBadToken(const std::int32_t* tokens, std::int64_t count, std::int64_t vocabulary,
                       std::int64_t* first, Stream stream) {
  FindBadTokenOnDevice<<<1, kEmbeddingThreads, 0, On(stream)>>>(tokens, count, vocabulary, first);
  return cudaGetLastError();
}

int LaunchGatherTokenGradients(const TokenGradientsArguments& arguments, std::int64_t vocabulary,
                               Stream stream) {
  if (vocabulary == 0 || arguments.hidden == 0) {
    return cudaSuccess;
  }
  const dim3 blocks(
      static_cast<unsigned>(vocabulary),
      static_cast<unsigned>((arguments.hidden + kEmbeddingThreads - 1) / kEmbeddingThreads));
  const std::size_t shared = kEmbeddingThreads * sizeof(std::int32_t);
  GatherTokenGradientsOnDevice<<<blocks, kEmbeddingThreads, shared, On(stream)>>>(arguments);
  return cudaGetLastError();
}

int LaunchSumOfSquares(const Operand& x, std::int64_t count, double* parts, double* all,
                       Stream stream) {
  const std::int64_t wanted = (count + 4 * kSumThreads - 1) / (4 * kSumThreads);
  const int blocks = static_cast<int>(std::clamp<std::int64_t>(wanted, 1, kMostSumParts));
  SquaresOnDevice<<<blocks, kSumThreads, 0, On(stream)>>>(x, count, blocks, parts);
  SumPartsOnDevice<<<1, kSumThreads, 0, On(stream)>>>(parts, blocks, all);
  return cudaGetLastError();
}

}  // namespace ranklab::compute::cuda
