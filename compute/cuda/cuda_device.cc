#include "compute/cuda/cuda_device.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <cuda_runtime_api.h>

#include "compute/cuda/cuda_transfers.h"
#include "compute/cuda/kernel_operations.h"
#include "compute/cuda/matrix_product.h"
#include "compute/cuda/stream_memory.h"
#include "compute/memory_counts.h"
#include "core/status.h"

namespace ranklab::compute::cuda {
namespace {

constexpr int kLeastMajor = 8;  // Ampere: what the build has code for

class CudaBuffer final : public Buffer {
 public:
  CudaBuffer(CudaDevice& device, MemoryCounts& counts, void* data, Bytes size, MemoryKind kind)
      : device_(device), counts_(counts), data_(data), size_(size), kind_(kind) {}
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;

  ~CudaBuffer() override {
    cudaFreeAsync(data_, static_cast<cudaStream_t>(device_.compute_stream()));
    counts_.Return(size_, kind_);
  }

  std::byte* data() override { return static_cast<std::byte*>(data_); }
  Bytes size() const override { return size_; }
  Device& device() override { return device_; }

 private:
  CudaDevice& device_;
  MemoryCounts& counts_;
  void* data_;
  Bytes size_;
  MemoryKind kind_;
};

std::string UuidOf(const cudaDeviceProp& properties) {
  std::string text = "GPU-";
  for (const char byte : properties.uuid.bytes) {
    text += absl::StrFormat("%02x", static_cast<unsigned char>(byte));
  }
  return text;
}

class Gpu final : public CudaDevice {
 public:
  explicit Gpu(const CudaOptions& options)
      : options_(options),
        name_(absl::StrFormat("cuda:%d", options.ordinal)),
        counts_(name_, options.cap) {}
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  ~Gpu() override {
    cudaSetDevice(options_.ordinal);
    cudaDeviceSynchronize();
    transfers_.reset();
    operations_.reset();
    if (pool_ != nullptr) {
      cudaMemPoolDestroy(pool_);
    }
    for (cudaEvent_t event : {computed_, communicated_}) {
      if (event != nullptr) {
        cudaEventDestroy(event);
      }
    }
    for (cudaStream_t stream : {compute_, communication_}) {
      if (stream != nullptr) {
        cudaStreamDestroy(stream);
      }
    }
  }

  absl::Status Open() {
    cudaDeviceProp properties{};
    RETURN_IF_ERROR(StatusOf(cudaGetDeviceProperties(&properties, options_.ordinal), name_));
    model_ = properties.name;
    uuid_ = UuidOf(properties);
    if (properties.major < kLeastMajor) {
      return FailedPrecondition(
          "device %s: %s has compute capability %d.%d; this build is for %d.0 and newer", name_,
          model_, properties.major, properties.minor, kLeastMajor);
    }
    RETURN_IF_ERROR(MakeCurrent());
    RETURN_IF_ERROR(OpenStreams());
    RETURN_IF_ERROR(OpenPool());
    ASSIGN_OR_RETURN(auto products,
                     MakeMatrixProducts({.stream = compute_, .tf32 = options_.tf32}));
    operations_ = MakeKernelOperations(
        {.device = name_,
         .stream = compute_,
         .most_shared_memory = static_cast<Bytes>(properties.sharedMemPerBlockOptin)},
        std::move(products));
    transfers_ = MakeCudaTransfers(*this);
    return absl::OkStatus();
  }

  std::string_view name() const override { return name_; }
  const std::string& model() const override { return model_; }
  const std::string& uuid() const override { return uuid_; }
  Stream compute_stream() override { return compute_; }
  Stream communication_stream() override { return communication_; }
  HostTransfers* host_transfers() override { return transfers_.get(); }
  std::vector<MemoryCount> memory() const override { return counts_.counts(); }

  // Every operation comes this way, from whatever thread: CUDA's current device is a thread's.
  Operations& operations() override {
    cudaSetDevice(options_.ordinal);
    return *operations_;
  }

  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(Bytes size, MemoryKind kind) override {
    RETURN_IF_ERROR(counts_.Take(size, kind));
    cudaSetDevice(options_.ordinal);
    void* data = nullptr;
    const auto wanted = static_cast<std::size_t>(std::max<Bytes>(size, 1));
    if (const cudaError_t error = cudaMallocFromPoolAsync(&data, wanted, pool_, compute_);
        error != cudaSuccess) {
      counts_.Return(size, kind);
      cudaGetLastError();  // not an error of what comes next
      return counts_.Refusal(size, kind,
                             absl::StrFormat("the GPU refused (%s)", cudaGetErrorString(error)));
    }
    return std::make_unique<CudaBuffer>(*this, counts_, data, size, kind);
  }

  absl::Status Synchronize() override {
    RETURN_IF_ERROR(MakeCurrent());
    RETURN_IF_ERROR(StatusOf(cudaStreamSynchronize(compute_), name_));
    return StatusOf(cudaStreamSynchronize(communication_), name_);
  }

  absl::Status CommunicationWaitsForCompute() override {
    return Order(computed_, compute_, communication_);
  }
  absl::Status ComputeWaitsForCommunication() override {
    return Order(communicated_, communication_, compute_);
  }
  absl::StatusOr<bool> ComputeIsDone() override { return IsDone(compute_); }
  absl::StatusOr<bool> CommunicationIsDone() override { return IsDone(communication_); }
  absl::Status MakeCurrent() override { return StatusOf(cudaSetDevice(options_.ordinal), name_); }

 private:
  // Transfers go first where both streams want the same engine: they are what others wait for.
  absl::Status OpenStreams() {
    int least = 0;
    int greatest = 0;
    RETURN_IF_ERROR(StatusOf(cudaDeviceGetStreamPriorityRange(&least, &greatest), name_));
    RETURN_IF_ERROR(
        StatusOf(cudaStreamCreateWithPriority(&compute_, cudaStreamNonBlocking, least), name_));
    RETURN_IF_ERROR(StatusOf(
        cudaStreamCreateWithPriority(&communication_, cudaStreamNonBlocking, greatest), name_));
    RETURN_IF_ERROR(StatusOf(cudaEventCreateWithFlags(&computed_, cudaEventDisableTiming), name_));
    return StatusOf(cudaEventCreateWithFlags(&communicated_, cudaEventDisableTiming), name_);
  }

  // Keeps what is given back, so that a step's allocations cost no call of the driver.
  absl::Status OpenPool() {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, options_.ordinal};
    RETURN_IF_ERROR(StatusOf(cudaMemPoolCreate(&pool_, &properties), name_));
    std::uint64_t kept = UINT64_MAX;
    return StatusOf(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &kept), name_);
  }

  absl::StatusOr<bool> IsDone(cudaStream_t stream) const {
    const cudaError_t error = cudaStreamQuery(stream);
    if (error == cudaErrorNotReady) {
      return false;
    }
    RETURN_IF_ERROR(StatusOf(error, name_));
    return true;
  }

  absl::Status Order(cudaEvent_t event, cudaStream_t first, cudaStream_t second) {
    RETURN_IF_ERROR(MakeCurrent());
    RETURN_IF_ERROR(StatusOf(cudaEventRecord(event, first), name_));
    return StatusOf(cudaStreamWaitEvent(second, event, 0), name_);
  }

  const CudaOptions options_;
  const std::string name_;
  std::string model_, uuid_;
  MemoryCounts counts_;
  cudaStream_t compute_ = nullptr, communication_ = nullptr;
  cudaEvent_t computed_ = nullptr, communicated_ = nullptr;
  cudaMemPool_t pool_ = nullptr;
  std::unique_ptr<Operations> operations_;
  std::unique_ptr<HostTransfers> transfers_;
};

}  // namespace

absl::StatusOr<int> DeviceCount() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    cudaGetLastError();
    return FailedPrecondition("device cuda: there is no GPU to compute on here: %s",
                              error != cudaSuccess ? cudaGetErrorString(error) : "none is visible");
  }
  return count;
}

absl::StatusOr<std::unique_ptr<CudaDevice>> MakeCudaDevice(const CudaOptions& options) {
  ASSIGN_OR_RETURN(const int count, DeviceCount());
  if (options.ordinal < 0 || options.ordinal >= count) {
    return InvalidArgument("device cuda:%d: there are %d GPUs here", options.ordinal, count);
  }
  auto gpu = std::make_unique<Gpu>(options);
  RETURN_IF_ERROR(gpu->Open());
  return gpu;
}

}  // namespace ranklab::compute::cuda
