#include <cuda_runtime.h>

#include "compute/cuda/attention_gradient_kernel.h"
#include "compute/cuda/attention_kernel.h"
#include "compute/cuda/block.h"
#include "compute/cuda/launch.h"

namespace ranklab::compute::cuda {
namespace {

__global__ void __launch_bounds__(kAttentionThreads) ForwardOnDevice(AttentionArguments arguments) {
  Block<kAttentionThreads> block;
  AttentionForward(arguments, block);
}

__global__ void __launch_bounds__(kAttentionThreads)
    QueryGradientOnDevice(AttentionArguments arguments) {
  Block<kAttentionThreads, QueryGradientState> block;
  AttentionQueryGradient(arguments, block);
}

__global__ void __launch_bounds__(kAttentionThreads)
    KeyGradientOnDevice(AttentionArguments arguments) {
  Block<kAttentionThreads> block;
  AttentionKeyGradient(arguments, block);
}

// More than 48 KiB of shared memory has to be asked for.
template <typename Kernel>
int LaunchOverTiles(Kernel* kernel, int floats, const AttentionArguments& arguments,
                    std::int64_t samples, Stream stream) {
  if (samples == 0 || arguments.length == 0) {
    return cudaSuccess;
  }
  const int bytes = floats * static_cast<int>(sizeof(float));
  if (const cudaError_t error =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
      error != cudaSuccess) {
    return error;
  }
  const dim3 blocks(static_cast<unsigned>(arguments.tiles()),
                    static_cast<unsigned>(arguments.heads), static_cast<unsigned>(samples));
  kernel<<<blocks, kAttentionThreads, static_cast<std::size_t>(bytes),
           static_cast<cudaStream_t>(stream)>>>(arguments);
  return cudaGetLastError();
}

}  // namespace

std::int64_t AttentionSharedBytes(std::int64_t width) {
  AttentionArguments arguments{};
  arguments.width = width;
  return KeyGradientFloats(arguments) * static_cast<std::int64_t>(sizeof(float));
}

int LaunchAttention(const AttentionArguments& arguments, std::int64_t samples, Stream stream) {
  return LaunchOverTiles(ForwardOnDevice, ForwardFloats(arguments), arguments, samples, stream);
}

int LaunchAttentionBackward(const AttentionArguments& arguments, std::int64_t samples,
                            Stream stream) {
  if (const int error = Launch(AttentionMeansKernel{arguments},
                               {samples * arguments.length, arguments.heads}, stream);
      error != cudaSuccess) {
    return error;
  }
  if (const int error = LaunchOverTiles(QueryGradientOnDevice, QueryGradientFloats(arguments),
                                        arguments, samples, stream);
      error != cudaSuccess) {
    return error;
  }
  return LaunchOverTiles(KeyGradientOnDevice, KeyGradientFloats(arguments), arguments, samples,
                         stream);
}

}  // namespace ranklab::compute::cuda
