#include "transport/buffer_pool.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace ranklab::transport {

Buffer::Buffer(Bytes capacity)
    : bytes_(std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(capacity))),
      capacity_(capacity) {}

Buffer BufferPool::Take(Bytes size) {
  RANKLAB_CHECK(size >= 0, "size %d", size);
  if (size == 0) {
    return {};
  }
  // A buffer much larger than asked for would be missing for the message that needs it.
  const auto found = std::find_if(idle_.begin(), idle_.end(), [size](const Buffer& idle) {
    return idle.capacity() >= size && idle.capacity() / 4 <= size;
  });
  if (found == idle_.end()) {
    return Buffer(size);
  }
  std::swap(*found, idle_.back());
  Buffer buffer = std::move(idle_.back());
  idle_.pop_back();
  idle_bytes_ -= buffer.capacity();
  return buffer;
}

void BufferPool::Give(Buffer buffer) {
  if (buffer.data() == nullptr || idle_bytes_ + buffer.capacity() > keep_) {
    return;
  }
  idle_bytes_ += buffer.capacity();
  idle_.push_back(std::move(buffer));
}

}  // namespace ranklab::transport
