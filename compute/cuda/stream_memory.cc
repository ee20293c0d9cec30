#include "compute/cuda/stream_memory.h"

#include <cuda_runtime_api.h>

#include "core/status.h"

namespace ranklab::compute::cuda {
namespace {

cudaStream_t On(Stream stream) { return static_cast<cudaStream_t>(stream); }

int CopyAndWait(Stream stream, const void* from, void* to, Bytes size, cudaMemcpyKind kind) {
  const cudaError_t error =
      cudaMemcpyAsync(to, from, static_cast<std::size_t>(size), kind, On(stream));
  return error != cudaSuccess ? error : cudaStreamSynchronize(On(stream));
}

}  // namespace

int AllocateOn(Stream stream, Bytes size, void** memory) {
  return cudaMallocAsync(memory, static_cast<std::size_t>(size), On(stream));
}

int FreeOn(Stream stream, void* memory) { return cudaFreeAsync(memory, On(stream)); }

int ClearOn(Stream stream, void* memory, Bytes size) {
  return cudaMemsetAsync(memory, 0, static_cast<std::size_t>(size), On(stream));
}

int CopyIn(Stream stream, const void* host, void* memory, Bytes size) {
  return CopyAndWait(stream, host, memory, size, cudaMemcpyHostToDevice);
}

int CopyOut(Stream stream, const void* memory, void* host, Bytes size) {
  return CopyAndWait(stream, memory, host, size, cudaMemcpyDeviceToHost);
}

absl::Status StatusOf(int error, std::string_view what) {
  if (error == cudaSuccess) {
    return absl::OkStatus();
  }
  const auto code = static_cast<cudaError_t>(error);
  if (code == cudaErrorMemoryAllocation) {
    return ResourceExhausted("%s: the GPU's memory is used up", what);
  }
  return Internal("%s: %s (%s)", what, cudaGetErrorString(code), cudaGetErrorName(code));
}

}  // namespace ranklab::compute::cuda
