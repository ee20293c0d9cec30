// Bytes from one process to another through memory that both have mapped: one writes, one reads, no
// locks and no system calls. Neither side waits here; each says before it sleeps, so that the other
// knows when to wake it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ranklab::transport {

// In the shared memory, zero at first. Fields of the two sides lie on cache lines of their own.
struct RingControl {
  alignas(64) std::atomic<std::uint64_t> written;  // bytes, since the beginning
  std::atomic<std::uint32_t> writer_sleeps;
  alignas(64) std::atomic<std::uint64_t> read;
  std::atomic<std::uint32_t> reader_sleeps;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// The writer's end. `data` is `capacity` bytes, a power of two.
class RingWriter {
 public:
  RingWriter(RingControl& control, std::byte* data, std::size_t capacity);

  // As much as there is room for now; the reader sees it when this returns.
  std::size_t Write(const std::byte* from, std::size_t size);

  bool Ready() { return Room() > 0 || corrupt_; }  // Write has something to do

  // After Write: must the reader be woken? True once for each time that it fell asleep.
  bool TakeSleeper();

  // May this side sleep until it is woken? False: there is room by now.
  bool FallAsleep();
  void Awake() { control_.writer_sleeps.store(0, std::memory_order_relaxed); }

  bool Corrupt() const { return corrupt_; }  // the reader broke the ring: nothing goes any more

 private:
  std::size_t Room();

  RingControl& control_;
  std::byte* const data_;
  const std::size_t capacity_;
  std::uint64_t written_ = 0;
  bool corrupt_ = false;
};

class RingReader {
 public:
  RingReader(RingControl& control, const std::byte* data, std::size_t capacity);

  // As much as is there now, at most `size`; the writer may use its room when this returns.
  std::size_t Read(std::byte* to, std::size_t size);

  bool Ready() { return Available() > 0 || corrupt_; }  // Read has something to do

  // After Read: must the writer be woken? Once half of the ring is empty, so that it is woken for
  // more than a few bytes.
  bool TakeSleeper();

  // As RingWriter's. False: there are bytes by now.
  bool FallAsleep();
  void Awake() { control_.reader_sleeps.store(0, std::memory_order_relaxed); }

  bool Corrupt() const { return corrupt_; }

 private:
  std::size_t Available();

  RingControl& control_;
  const std::byte* const data_;
  const std::size_t capacity_;
  std::uint64_t read_ = 0;
  bool corrupt_ = false;
};

}  // namespace ranklab::transport
