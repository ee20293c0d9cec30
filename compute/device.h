// The CPU as a device.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

#include "compute/memory_counts.h"
#include "compute/tensor.h"

namespace ranklab::compute {

struct CpuOptions {
  int threads =
      1;          // for matrix work; the rest runs on the calling thread. Idle threads do not spin
  Bytes cap = 0;  // of all kinds together; 0: none
};

// Memory counted by kind, 64-byte aligned; matrix products through oneDNN. Allocate and release
// from any thread; operations from one at a time.
class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const CpuOptions& options);
  ~CpuDevice() override;
  std::string_view name() const override { return "cpu"; }
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(Bytes size, MemoryKind kind) override;
  absl::Status Synchronize() override { return absl::OkStatus(); }
  Operations& operations() override { return *operations_; }
  HostTransfers* host_transfers() override { return nullptr; }
  std::vector<MemoryCount> memory() const override { return counts_.counts(); }

  int threads() const { return options_.threads; }

 private:
  CpuOptions options_;
  MemoryCounts counts_;
  std::unique_ptr<Operations> operations_;
};

// How a CPU multiplies tensors of 16 bits, in words for the record: "bf16 by oneDNN's bf16
// products,
// ...". Everything else is computed in float32 and stored in 16 bits.
std::string_view ProductsOf16Bits();

// Operations on memory that the CPU can address, with `threads` threads for matrix products.
std::unique_ptr<Operations> MakeCpuOperations(int threads);

}  // namespace ranklab::compute
