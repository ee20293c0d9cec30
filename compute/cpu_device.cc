#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include "compute/device.h"
#include "compute/operations.h"
#include "core/check.h"
#include "core/status.h"

namespace ranklab::compute {

struct CpuDevice::Counts {
  absl::Mutex mutex;
  std::array<MemoryCount, kMemoryKinds> of_kind ABSL_GUARDED_BY(mutex);
  Bytes total ABSL_GUARDED_BY(mutex) = 0;

  MemoryCount& at(MemoryKind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return of_kind.at(static_cast<std::size_t>(kind));
  }
};

namespace {

constexpr Bytes kAlignment = 64;  // a cache line, and the widest vector register

std::string InUse(const std::array<MemoryCount, kMemoryKinds>& counts) {
  std::string text;
  for (const MemoryCount& count : counts) {
    if (count.now > 0) {
      text += absl::StrFormat("%s%s %d", text.empty() ? "" : ", ", NameOf(count.kind), count.now);
    }
  }
  return text.empty() ? "nothing" : text;
}

class CpuBuffer final : public Buffer {
 public:
  CpuBuffer(Device& device, std::shared_ptr<CpuDevice::Counts> counts, std::byte* data, Bytes size,
            MemoryKind kind)
      : device_(device), counts_(std::move(counts)), data_(data), size_(size), kind_(kind) {}
  CpuBuffer(const CpuBuffer&) = delete;
  CpuBuffer& operator=(const CpuBuffer&) = delete;

  ~CpuBuffer() override {
    std::free(data_);
    absl::MutexLock lock(&counts_->mutex);
    counts_->at(kind_).now -= size_;
    counts_->total -= size_;
    RANKLAB_CHECK(counts_->at(kind_).now >= 0);
  }

  std::byte* data() override { return data_; }
  Bytes size() const override { return size_; }
  Device& device() override { return device_; }

 private:
  Device& device_;
  std::shared_ptr<CpuDevice::Counts> counts_;
  std::byte* data_;
  Bytes size_;
  MemoryKind kind_;
};

}  // namespace

std::string_view NameOf(MemoryKind kind) {
  constexpr std::array<std::string_view, kMemoryKinds> kNames{
      "weights", "gradients", "optimizer", "activations", "communication", "data"};
  return kNames.at(static_cast<std::size_t>(kind));
}

CpuDevice::CpuDevice(const CpuOptions& options)
    : options_(options),
      counts_(std::make_shared<Counts>()),
      operations_(MakeCpuOperations(options.threads)) {
  RANKLAB_CHECK(options.cap >= 0);
  absl::MutexLock lock(&counts_->mutex);
  for (int i = 0; i < kMemoryKinds; ++i) {
    counts_->of_kind.at(i).kind = static_cast<MemoryKind>(i);
  }
}

CpuDevice::~CpuDevice() {
  absl::MutexLock lock(&counts_->mutex);
  RANKLAB_CHECK(counts_->total == 0, "%d bytes outlive their device", counts_->total);
}

absl::StatusOr<std::unique_ptr<Buffer>> CpuDevice::Allocate(Bytes size, MemoryKind kind) {
  RANKLAB_CHECK(size >= 0, "size %d", size);
  absl::MutexLock lock(&counts_->mutex);
  if (options_.cap > 0 && size > options_.cap - counts_->total) {
    return ResourceExhausted("out of memory on cpu: %s asked for %d bytes; in use: %s; cap %d",
                             NameOf(kind), size, InUse(counts_->of_kind), options_.cap);
  }
  const Bytes rounded = (size / kAlignment + 1) * kAlignment;
  auto* data = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  if (data == nullptr) {
    return ResourceExhausted(
        "out of memory on cpu: %s asked for %d bytes, which the machine refused; in use: %s",
        NameOf(kind), size, InUse(counts_->of_kind));
  }
  MemoryCount& count = counts_->at(kind);
  count.now += size;
  count.peak = std::max(count.peak, count.now);
  counts_->total += size;
  return std::make_unique<CpuBuffer>(*this, counts_, data, size, kind);
}

std::vector<MemoryCount> CpuDevice::memory() const {
  absl::MutexLock lock(&counts_->mutex);
  return {counts_->of_kind.begin(), counts_->of_kind.end()};
}

}  // namespace ranklab::compute
