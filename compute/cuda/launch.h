// Kernels on a stream: what the .cu files compile. Each returns a cudaError_t, as an int so that
// CUDA's headers stay in sources; nothing is launched over an empty tensor.
#pragma once

#include <cstdint>

#include "compute/cuda/attention_gradient_kernel.h"
#include "compute/cuda/column_sums_kernel.h"
#include "compute/cuda/cross_entropy_kernel.h"
#include "compute/cuda/elementwise_kernel.h"
#include "compute/cuda/embedding_kernel.h"
#include "compute/cuda/layer_norm_kernel.h"

namespace ranklab::compute::cuda {

using Stream = void*;  // cudaStream_t

// elementwise.cu: over (rows, n).
struct Extent {
  std::int64_t rows, n;
};
int Launch(const AddBiasKernel& kernel, const Extent& extent, Stream stream);
int Launch(const AddBiasGeluKernel& kernel, const Extent& extent, Stream stream);
int Launch(const AddBiasResidualKernel& kernel, const Extent& extent, Stream stream);
int Launch(const ReluBackwardKernel& kernel, const Extent& extent, Stream stream);
int Launch(const GeluBackwardKernel& kernel, const Extent& extent, Stream stream);
int Launch(const ConvertKernel& kernel, const Extent& extent, Stream stream);
int Launch(const SgdKernel& kernel, const Extent& extent, Stream stream);
int Launch(const MomentumKernel& kernel, const Extent& extent, Stream stream);
int Launch(const AdamWKernel& kernel, const Extent& extent, Stream stream);
int Launch(const AddPartialSumsKernel& kernel, const Extent& extent, Stream stream);
int Launch(const EmbedTokensKernel& kernel, const Extent& extent, Stream stream);
int Launch(const PositionGradientsKernel& kernel, const Extent& extent, Stream stream);
int Launch(const AttentionMeansKernel& kernel, const Extent& extent, Stream stream);

// rows.cu. `partial` is (parts, outputs, n); `rows_of_block` of the shape makes as many parts.
int LaunchColumnSums(const RowValues& values, const ColumnSumsShape& shape, float* partial,
                     Stream stream);
int LaunchColumnSums(const LayerNormGradientValues& values, const ColumnSumsShape& shape,
                     float* partial, Stream stream);
int LaunchLayerNorm(const LayerNormArguments& arguments, std::int64_t rows, Stream stream);
int LaunchLayerNormBackward(const LayerNormBackwardArguments& arguments, std::int64_t rows,
                            Stream stream);
// Both kernels: the rows, then their sum into `all`.
int LaunchCrossEntropy(const CrossEntropyArguments& arguments, std::int64_t rows, LossOfRows* all,
                       Stream stream);
int LaunchFindBadToken(const std::int32_t* tokens, std::int64_t count, std::int64_t vocabulary,
                       std::int64_t* first, Stream stream);
int LaunchGatherTokenGradients(const TokenGradientsArguments& arguments, std::int64_t vocabulary,
                               Stream stream);
// `parts` has room for kMostSumParts.
inline constexpr int kMostSumParts = 512;
int LaunchSumOfSquares(const Operand& x, std::int64_t count, double* parts, double* all,
                       Stream stream);

// attention.cu. Backward: the means, then both gradients.
int LaunchAttention(const AttentionArguments& arguments, std::int64_t samples, Stream stream);
int LaunchAttentionBackward(const AttentionArguments& arguments, std::int64_t samples,
                            Stream stream);
// Shared memory that a block of the backward pass wants: more than a GPU has for wide heads.
std::int64_t AttentionSharedBytes(std::int64_t width);

}  // namespace ranklab::compute::cuda
