#include "compute/cuda/cuda_transfers.h"

#include <utility>

#include <cuda_runtime_api.h>

#include "compute/cuda/stream_memory.h"
#include "core/check.h"
#include "core/status.h"

namespace ranklab::compute::cuda {
namespace {

class PinnedBuffer final : public Buffer {
 public:
  PinnedBuffer(CudaDevice& device, std::byte* data, Bytes size)
      : device_(device), data_(data), size_(size) {}
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  ~PinnedBuffer() override { cudaFreeHost(data_); }

  std::byte* data() override { return data_; }
  Bytes size() const override { return size_; }
  Device& device() override { return device_; }

 private:
  CudaDevice& device_;
  std::byte* data_;
  Bytes size_;
};

// On a thread of the driver's.
void CUDART_CB RunDone(cudaStream_t, cudaError_t error, void* done) {
  const std::unique_ptr<DoneFn> call(static_cast<DoneFn*>(done));
  (*call)(StatusOf(error, "copy to the host"));
}

class CudaTransfers final : public HostTransfers {
 public:
  explicit CudaTransfers(CudaDevice& device) : device_(device) {}

  absl::StatusOr<std::unique_ptr<Buffer>> AllocateHost(Bytes size) override {
    RETURN_IF_ERROR(device_.MakeCurrent());
    void* data = nullptr;
    if (const cudaError_t error =
            cudaHostAlloc(&data, static_cast<std::size_t>(size) + 1, cudaHostAllocDefault);
        error != cudaSuccess) {
      return ResourceExhausted("%d bytes of page-locked memory: %s", size,
                               cudaGetErrorString(error));
    }
    return std::make_unique<PinnedBuffer>(device_, static_cast<std::byte*>(data), size);
  }

  // The driver runs nothing behind a failed stream but callbacks of this kind, which are told: a
  // host function (cudaLaunchHostFunc) would be left out, and whoever waits for it would wait for
  // ever.
  void Download(const TensorView& x, const TensorView& host, DoneFn done) override {
    RANKLAB_CHECK(x.byte_count() == host.byte_count());
    auto call = std::make_unique<DoneFn>(std::move(done));
    absl::Status begun = Copy(x, host);
    if (begun.ok()) {
      begun = StatusOf(cudaStreamAddCallback(communication(), RunDone, call.get(), 0),
                       "copy to the host");
    }
    if (begun.ok()) {
      static_cast<void>(call.release());  // RunDone's now
    } else {
      (*call)(begun);
    }
  }

  absl::Status Upload(const TensorView& host, const TensorView& x) override {
    RANKLAB_CHECK(x.byte_count() == host.byte_count());
    RETURN_IF_ERROR(device_.MakeCurrent());
    return StatusOf(cudaMemcpyAsync(x.data, host.data, static_cast<std::size_t>(x.byte_count()),
                                    cudaMemcpyHostToDevice,
                                    static_cast<cudaStream_t>(device_.compute_stream())),
                    "copy from the host");
  }

 private:
  cudaStream_t communication() const {
    return static_cast<cudaStream_t>(device_.communication_stream());
  }

  absl::Status Copy(const TensorView& x, const TensorView& host) {
    RETURN_IF_ERROR(device_.CommunicationWaitsForCompute());
    return StatusOf(cudaMemcpyAsync(host.data, x.data, static_cast<std::size_t>(x.byte_count()),
                                    cudaMemcpyDeviceToHost, communication()),
                    "copy to the host");
  }

  CudaDevice& device_;
};

}  // namespace

std::unique_ptr<HostTransfers> MakeCudaTransfers(CudaDevice& device) {
  return std::make_unique<CudaTransfers>(device);
}

}  // namespace ranklab::compute::cuda
