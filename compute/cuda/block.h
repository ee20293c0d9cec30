// A block of GPU threads, as a kernel here sees it: phases that every thread runs, with a barrier
// behind each. What a thread must not forget between phases is its State. The tests have a block of
// the same shape whose threads run one after the other on the host (tests/compute/cuda).
#pragma once

#ifdef __CUDACC__

#include "compute/cuda/host_device.h"

namespace ranklab::compute::cuda {

struct NoState {};

// Requires: a multiple of 32 threads.
template <int kThreadCount, typename State = NoState>
class Block {
 public:
  static constexpr int kThreads = kThreadCount;

  // Methods are empty on the host, where they are compiled but never run.
  RANKLAB_HOST_DEVICE int x() const { return Index(0); }
  RANKLAB_HOST_DEVICE int y() const { return Index(1); }
  RANKLAB_HOST_DEVICE int z() const { return Index(2); }

  // As many floats as the launch gave.
  RANKLAB_HOST_DEVICE float* shared() const {
#ifdef __CUDA_ARCH__
    extern __shared__ float memory[];
    return memory;
#else
    return nullptr;
#endif
  }

  template <typename F>
  RANKLAB_HOST_DEVICE void Each(F phase) {
#ifdef __CUDA_ARCH__
    phase(static_cast<int>(threadIdx.x), state_);
    __syncthreads();
#endif
  }

  // combine over value(thread, state) of all threads, which all get. T is trivial, of whole words.
  template <typename T, typename F, typename Combine>
  RANKLAB_HOST_DEVICE T Reduce(F value, Combine combine) {
#ifdef __CUDA_ARCH__
    constexpr int kWarps = kThreads / 32;
    __shared__ T of_warp[kWarps];
    T mine = value(static_cast<int>(threadIdx.x), state_);
    for (int distance = 16; distance > 0; distance /= 2) {
      mine = combine(mine, FromThreadAhead(mine, distance));
    }
    if (threadIdx.x % 32 == 0) {
      of_warp[threadIdx.x / 32] = mine;
    }
    __syncthreads();
    T all = of_warp[0];
    for (int warp = 1; warp < kWarps; ++warp) {
      all = combine(all, of_warp[warp]);
    }
    __syncthreads();
    return all;
#else
    return T{};
#endif
  }

 private:
  RANKLAB_HOST_DEVICE int Index(int dimension) const {
#ifdef __CUDA_ARCH__
    return static_cast<int>(dimension == 0 ? blockIdx.x : dimension == 1 ? blockIdx.y : blockIdx.z);
#else
    return dimension;
#endif
  }

#ifdef __CUDA_ARCH__
  template <typename T>
  static __device__ T FromThreadAhead(const T& mine, int distance) {
    static_assert(sizeof(T) % sizeof(unsigned) == 0);
    union Words {
      T value;
      unsigned word[sizeof(T) / sizeof(unsigned)];
    };
    Words words;
    words.value = mine;
    for (unsigned& word : words.word) {
      word = __shfl_down_sync(0xFFFFFFFFU, word, distance);
    }
    return words.value;
  }
#endif

  State state_;
};

}  // namespace ranklab::compute::cuda

#endif  // __CUDACC__
