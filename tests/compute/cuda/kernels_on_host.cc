// The device under test is the GPU's operations over kernels that run on the host; products are the
// CPU's. Runs without a GPU and without CUDA.
#include <gtest/gtest.h>

#include "compute/cuda/kernel_operations.h"
#include "compute/device.h"
#include "tests/compute/cuda/device_under_test.h"

namespace ranklab::compute::cuda {
namespace {

class CpuProducts final : public MatrixProducts {
 public:
  absl::Status Multiply(const MatMulShape& shape, const TensorView& a, const TensorView& b,
                        float beta, const TensorView& c) override {
    return cpu_->MatMul(shape, a, b, beta, c);
  }

 private:
  const std::unique_ptr<Operations> cpu_ = MakeCpuOperations(1);
};

constexpr Bytes kSharedMemory = 163 * 1024;  // of a block on sm_80

class KernelsOnHost final : public Device {
 public:
  std::string_view name() const override { return "kernels on the host"; }
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(Bytes size, MemoryKind kind) override;
  absl::Status Synchronize() override { return absl::OkStatus(); }
  Operations& operations() override { return *operations_; }
  HostTransfers* host_transfers() override { return nullptr; }
  std::vector<MemoryCount> memory() const override { return memory_.memory(); }

 private:
  CpuDevice memory_{{}};
  const std::unique_ptr<Operations> operations_ = MakeKernelOperations(
      {.device = "the host", .most_shared_memory = kSharedMemory}, std::make_unique<CpuProducts>());
};

// Memory of the CPU that says it is this device's.
class HostBuffer final : public Buffer {
 public:
  HostBuffer(Device& device, std::unique_ptr<Buffer> memory)
      : device_(device), memory_(std::move(memory)) {}
  std::byte* data() override { return memory_->data(); }
  Bytes size() const override { return memory_->size(); }
  Device& device() override { return device_; }

 private:
  Device& device_;
  const std::unique_ptr<Buffer> memory_;
};

absl::StatusOr<std::unique_ptr<Buffer>> KernelsOnHost::Allocate(Bytes size, MemoryKind kind) {
  auto memory = memory_.Allocate(size, kind);
  if (!memory.ok()) {
    return memory.status();
  }
  return std::make_unique<HostBuffer>(*this, std::move(*memory));
}

}  // namespace

absl::StatusOr<Device*> DeviceUnderTest() {
  static KernelsOnHost device;
  return &device;
}

}  // namespace ranklab::compute::cuda
