#include <algorithm>

#include <cuda_runtime.h>

#include "compute/cuda/launch.h"

namespace ranklab::compute::cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 65535;  // in y

// Blocks of 256 threads, `across` of them side by side, each with four elements of a row.
template <typename Kernel>
__global__ void OverElements(Kernel kernel, Extent extent, int across) {
  const int in_row = static_cast<int>(threadIdx.x) % across;
  const int down = kThreads / across;
  const std::int64_t column = 4 * (static_cast<std::int64_t>(blockIdx.x) * across + in_row);
  if (column >= extent.n) {
    return;
  }
  const int count = extent.n - column < 4 ? static_cast<int>(extent.n - column) : 4;
  std::int64_t row = static_cast<std::int64_t>(blockIdx.y) * down + threadIdx.x / across;
  for (; row < extent.rows; row += static_cast<std::int64_t>(gridDim.y) * down) {
    kernel(row, column, count);
  }
}

template <typename Kernel>
int LaunchOverElements(const Kernel& kernel, const Extent& extent, Stream stream) {
  if (extent.rows == 0 || extent.n == 0) {
    return cudaSuccess;
  }
  int across = kThreads;  // as few threads beside a short row as powers of two leave
  while (across > 1 && 4 * (across / 2) >= extent.n) {
    across /= 2;
  }
  const std::int64_t down = kThreads / across;
  const dim3 blocks(static_cast<unsigned>((extent.n + 4 * across - 1) / (4 * across)),
                    static_cast<unsigned>(std::min((extent.rows + down - 1) / down, kMostBlocks)));
  OverElements<<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(kernel, extent, across);
  return cudaGetLastError();
}

}  // namespace

int Launch(const AddBiasKernel& kernel, const Extent& extent, Stream stream) {
  return LaunchOverElements(kernel, extent, stream);
}
int Launch(const AddBiasGeluKernel& kernel, const Extent& extent, Stream stream) {
  return LaunchOverElements(kernel, extent, stream);
}
int Launch(const AddBiasResidualKernel& kernel, const Extent& extent, Stream stream) {
  return LaunchOverElements(kernel, extent, stream);
}
int Launch(const ReluBackwardKernel& kernel, const Extent& extent, Stream stream) {
  return LaunchOverElements(kernel, extent, stream);
}
int Launch(const GeluBackwardKernel& kernel, const Extent& extent, Stream stream) {
  return LaunchOverElements(kernel, extent, stream);
}
int Launch(const ConvertKernel& kernel, const Extent& extent, Stream stream) {
  return LaunchOverElements(kernel, extent, stream);
}
int Launch(const SgdKernel& kernel, const Extent& extent, Stream stream) {
  return LaunchOverElements(kernel, extent, stream);
}
int Launch(const MomentumKernel& kernel, const Extent& extent, Stream stream) {
  return LaunchOverElements(kernel, extent, stream);
}
int Launch(const AdamWKernel& kernel, const Extent& extent, Stream stream) {
  return LaunchOverElements(kernel, extent, stream);
}
int Launch(const AddPartialSumsKernel& kernel, const Extent& extent, Stream stream) {
  return LaunchOverElements(kernel, extent, stream);
}
int Launch(const EmbedTokensKernel& kernel, const Extent& extent, Stream stream) {
  return LaunchOverElements(kernel, extent, stream);
}
int Launch(const PositionGradientsKernel& kernel, const Extent& extent, Stream stream) {
  return LaunchOverElements(kernel, extent, stream);
}
int Launch(const AttentionMeansKernel& kernel, const Extent& extent, Stream stream) {
  return LaunchOverElements(kernel, extent, stream);
}

}  // namespace ranklab::compute::cuda
