// The devices there are.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

#include "compute/tensor.h"

namespace ranklab::compute {

struct MemoryCount {
  MemoryKind kind{};
  Bytes now = 0;
  Bytes peak = 0;  // of this kind
};
std::string_view NameOf(MemoryKind kind);

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

  std::vector<MemoryCount> memory() const;  // every kind, in the order of MemoryKind
  int threads() const { return options_.threads; }

  struct Counts;

 private:
  CpuOptions options_;
  std::shared_ptr<Counts> counts_;
  std::unique_ptr<Operations> operations_;
};

// How a CPU multiplies tensors of 16 bits, in words for the record: "bf16 by oneDNN's bf16
// products,
// ...". Everything else is computed in float32 and stored in 16 bits.
std::string_view ProductsOf16Bits();

// Operations on memory that the CPU can address, with `threads` threads for matrix products.
std::unique_ptr<Operations> MakeCpuOperations(int threads);

// "cpu", or "auto" which is the best there is.
// Errors: Unimplemented, "cuda" in a build without it; InvalidArgument, another name.
absl::StatusOr<std::unique_ptr<Device>> MakeDevice(std::string_view name,
                                                   const CpuOptions& options);

}  // namespace ranklab::compute
