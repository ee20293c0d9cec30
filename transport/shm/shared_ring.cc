#include "transport/shm/shared_ring.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/check.h"

// Positions and sleeping are sequentially consistent: whoever falls asleep says so and then looks
// at the other's position; the other moves its position and then looks whether somebody sleeps. One
// of the two sees the other's word, so that nobody sleeps through a wake-up.
namespace ranklab::transport {
namespace {

bool TakeFlag(std::atomic<std::uint32_t>& sleeps) {
  return sleeps.load(std::memory_order_seq_cst) != 0 &&
         sleeps.exchange(0, std::memory_order_seq_cst) != 0;
}

}  // namespace

RingWriter::RingWriter(RingControl& control, std::byte* data, std::size_t capacity)
    : control_(control), data_(data), capacity_(capacity) {
  RANKLAB_CHECK(std::has_single_bit(capacity), "capacity %d", capacity);
}

std::size_t RingWriter::Room() {
  const std::uint64_t used = written_ - control_.read.load(std::memory_order_seq_cst);
  corrupt_ = corrupt_ || used > capacity_;
  return corrupt_ ? 0 : capacity_ - used;
}

std::size_t RingWriter::Write(const std::byte* from, std::size_t size) {
  const std::size_t count = std::min(size, Room());
  const std::size_t at = written_ & (capacity_ - 1);
  const std::size_t first = std::min(count, capacity_ - at);
  std::memcpy(data_ + at, from, first);
  std::memcpy(data_, from + first, count - first);
  written_ += count;
  control_.written.store(written_, std::memory_order_seq_cst);
  return count;
}

bool RingWriter::TakeSleeper() { return TakeFlag(control_.reader_sleeps); }

bool RingWriter::FallAsleep() {
  control_.writer_sleeps.store(1, std::memory_order_seq_cst);
  if (!Ready()) {
    return true;
  }
  Awake();
  return false;
}

RingReader::RingReader(RingControl& control, const std::byte* data, std::size_t capacity)
    : control_(control), data_(data), capacity_(capacity) {
  RANKLAB_CHECK(std::has_single_bit(capacity), "capacity %d", capacity);
}

std::size_t RingReader::Available() {
  const std::uint64_t available = control_.written.load(std::memory_order_seq_cst) - read_;
  corrupt_ = corrupt_ || available > capacity_;
  return corrupt_ ? 0 : available;
}

std::size_t RingReader::Read(std::byte* to, std::size_t size) {
  const std::size_t count = std::min(size, Available());
  const std::size_t at = read_ & (capacity_ - 1);
  const std::size_t first = std::min(count, capacity_ - at);
  std::memcpy(to, data_ + at, first);
  std::memcpy(to + first, data_, count - first);
  read_ += count;
  control_.read.store(read_, std::memory_order_seq_cst);
  return count;
}

bool RingReader::TakeSleeper() {
  return Available() <= capacity_ / 2 && TakeFlag(control_.writer_sleeps);
}

bool RingReader::FallAsleep() {
  control_.reader_sleeps.store(1, std::memory_order_seq_cst);
  if (!Ready()) {
    return true;
  }
  Awake();
  return false;
}

}  // namespace ranklab::transport
