// Byte buffers that are used again: for messages that come before their receive, and for the bodies
// of requests.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/units.h"

namespace ranklab::transport {

// Move-only. Bytes are not initialised.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(Bytes capacity);

  std::byte* data() { return bytes_.get(); }
  Bytes capacity() const { return capacity_; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  Bytes capacity_ = 0;
};

class BufferPool {
 public:
  // Keeps at most `keep` bytes that nobody uses.
  explicit BufferPool(Bytes keep) : keep_(keep) {}

  // At least `size` bytes; an empty buffer for 0.
  Buffer Take(Bytes size);
  void Give(Buffer buffer);

  Bytes idle_bytes() const { return idle_bytes_; }

 private:
  Bytes keep_;
  Bytes idle_bytes_ = 0;
  std::vector<Buffer> idle_;  // few: a scan is faster than a tree
};

}  // namespace ranklab::transport
