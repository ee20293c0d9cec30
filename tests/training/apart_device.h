// A device whose memory is not the host's, as far as anybody can tell: the CPU computes, copies to
// the host arrive later, on a thread of the device's.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <absl/base/thread_annotations.h>
#include <absl/functional/any_invocable.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/clock.h>

#include "compute/device.h"
#include "compute/host_transfers.h"
#include "compute/operations.h"
#include "core/status.h"

namespace ranklab::worker {

class ApartDevice final : public compute::Device, public compute::HostTransfers {
 public:
  ApartDevice() : thread_([this] { Deliver(); }) {}
  ~ApartDevice() override {
    {
      absl::MutexLock lock(&mutex_);
      stopped_ = true;
    }
    thread_.join();
  }

  std::string_view name() const override { return "apart"; }
  absl::Status Synchronize() override { return absl::OkStatus(); }
  compute::Operations& operations() override { return memory_.operations(); }
  compute::HostTransfers* host_transfers() override { return this; }
  std::vector<compute::MemoryCount> memory() const override { return memory_.memory(); }

  absl::StatusOr<std::unique_ptr<compute::Buffer>> Allocate(Bytes size,
                                                            compute::MemoryKind kind) override {
    ASSIGN_OR_RETURN(auto buffer, memory_.Allocate(size, kind));
    return std::make_unique<ApartBuffer>(*this, std::move(buffer));
  }
  absl::StatusOr<std::unique_ptr<compute::Buffer>> AllocateHost(Bytes size) override {
    return host_.Allocate(size, compute::MemoryKind::kCommunication);
  }

  void FailDownloads(absl::Status status) { failure_ = std::move(status); }

  void Download(const compute::TensorView& x, const compute::TensorView& host,
                DoneFn done) override {
    std::vector<std::byte> copy(x.data, x.data + x.byte_count());
    std::fill_n(host.data, host.byte_count(), std::byte{0xFF});  // NaN until it is there
    absl::MutexLock lock(&mutex_);
    deliveries_.push_back([copy = std::move(copy), to = host.data, status = failure_,
                           done = std::move(done)]() mutable {
      absl::SleepFor(absl::Milliseconds(2));  // others have time to be early
      std::ranges::copy(copy, to);
      done(status);
    });
  }

  absl::Status Upload(const compute::TensorView& host, const compute::TensorView& x) override {
    std::copy_n(host.data, x.byte_count(), x.data);
    return absl::OkStatus();
  }

 private:
  class ApartBuffer final : public compute::Buffer {
   public:
    ApartBuffer(compute::Device& device, std::unique_ptr<compute::Buffer> memory)
        : device_(device), memory_(std::move(memory)) {}
    std::byte* data() override { return memory_->data(); }
    Bytes size() const override { return memory_->size(); }
    compute::Device& device() override { return device_; }

   private:
    compute::Device& device_;
    const std::unique_ptr<compute::Buffer> memory_;
  };

  bool Due() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopped_ || !deliveries_.empty();
  }

  void Deliver() {
    for (;;) {
      absl::AnyInvocable<void()> next;
      {
        absl::MutexLock lock(&mutex_);
        mutex_.Await(absl::Condition(this, &ApartDevice::Due));
        if (deliveries_.empty()) {
          return;
        }
        next = std::move(deliveries_.front());
        deliveries_.pop_front();
      }
      next();
    }
  }

  compute::CpuDevice memory_{{}};
  compute::CpuDevice host_{{}};
  absl::Status failure_;
  absl::Mutex mutex_;
  std::deque<absl::AnyInvocable<void()>> deliveries_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace ranklab::worker
