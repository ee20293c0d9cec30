#include "compute/memory_counts.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/status.h"

namespace ranklab::compute {

std::string_view NameOf(MemoryKind kind) {
  constexpr std::array<std::string_view, kMemoryKinds> kNames{
      "weights", "gradients", "optimizer", "activations", "communication", "data"};
  return kNames.at(static_cast<std::size_t>(kind));
}

MemoryCounts::MemoryCounts(std::string device, Bytes cap) : device_(std::move(device)), cap_(cap) {
  RANKLAB_CHECK(cap >= 0);
  for (int i = 0; i < kMemoryKinds; ++i) {
    of_kind_.at(i).kind = static_cast<MemoryKind>(i);
  }
}

MemoryCounts::~MemoryCounts() {
  absl::MutexLock lock(&mutex_);
  RANKLAB_CHECK(total_ == 0, "%d bytes outlive their device", total_);
}

absl::Status MemoryCounts::Take(Bytes size, MemoryKind kind) {
  RANKLAB_CHECK(size >= 0, "size %d", size);
  absl::MutexLock lock(&mutex_);
  if (cap_ > 0 && size > cap_ - total_) {
    return ResourceExhausted("out of memory on %s: %s asked for %d bytes; in use: %s; cap %d",
                             device_, NameOf(kind), size, InUse(), cap_);
  }
  MemoryCount& count = at(kind);
  count.now += size;
  count.peak = std::max(count.peak, count.now);
  total_ += size;
  return absl::OkStatus();
}

void MemoryCounts::Return(Bytes size, MemoryKind kind) {
  absl::MutexLock lock(&mutex_);
  at(kind).now -= size;
  total_ -= size;
  RANKLAB_CHECK(at(kind).now >= 0);
}

absl::Status MemoryCounts::Refusal(Bytes size, MemoryKind kind, std::string_view why) const {
  absl::MutexLock lock(&mutex_);
  return ResourceExhausted("out of memory on %s: %s asked for %d bytes, which %s; in use: %s",
                           device_, NameOf(kind), size, why, InUse());
}

std::vector<MemoryCount> MemoryCounts::counts() const {
  absl::MutexLock lock(&mutex_);
  return {of_kind_.begin(), of_kind_.end()};
}

std::string MemoryCounts::InUse() const {
  std::string text;
  for (const MemoryCount& count : of_kind_) {
    if (count.now > 0) {
      text += absl::StrFormat("%s%s %d", text.empty() ? "" : ", ", NameOf(count.kind), count.now);
    }
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace ranklab::compute
