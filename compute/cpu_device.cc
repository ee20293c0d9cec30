#include <cstdlib>

#include "compute/device.h"
#include "compute/operations.h"
#include "core/status.h"

namespace ranklab::compute {
namespace {

constexpr Bytes kAlignment = 64;  // a cache line, and the widest vector register

class CpuBuffer final : public Buffer {
 public:
  CpuBuffer(Device& device, MemoryCounts& counts, std::byte* data, Bytes size, MemoryKind kind)
      : device_(device), counts_(counts), data_(data), size_(size), kind_(kind) {}
  CpuBuffer(const CpuBuffer&) = delete;
  CpuBuffer& operator=(const CpuBuffer&) = delete;

  ~CpuBuffer() override {
    std::free(data_);
    counts_.Return(size_, kind_);
  }

  std::byte* data() override { return data_; }
  Bytes size() const override { return size_; }
  Device& device() override { return device_; }

 private:
  Device& device_;
  MemoryCounts& counts_;
  std::byte* data_;
  Bytes size_;
  MemoryKind kind_;
};

}  // namespace

CpuDevice::CpuDevice(const CpuOptions& options)
    : options_(options),
      counts_("cpu", options.cap),
      operations_(MakeCpuOperations(options.threads)) {}

CpuDevice::~CpuDevice() = default;

absl::StatusOr<std::unique_ptr<Buffer>> CpuDevice::Allocate(Bytes size, MemoryKind kind) {
  RETURN_IF_ERROR(counts_.Take(size, kind));
  const Bytes rounded = (size / kAlignment + 1) * kAlignment;
  auto* data = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  if (data == nullptr) {
    counts_.Return(size, kind);
    return counts_.Refusal(size, kind, "the machine refused");
  }
  return std::make_unique<CpuBuffer>(*this, counts_, data, size, kind);
}

}  // namespace ranklab::compute
