// Memory that two processes of one host share: a ring for each direction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <absl/status/statusor.h>

#include "transport/shm/shared_ring.h"

namespace ranklab::transport {

// How its maker calls a segment to another process: valid while the maker keeps it offered.
struct SegmentId {
  std::uint32_t process = 0;  // 0: none
  std::uint32_t descriptor = 0;
};

class SharedSegment {
 public:
  // `key`: what only the two processes know. Errors: Unavailable, the system has no such memory.
  static absl::StatusOr<std::unique_ptr<SharedSegment>> Make(std::uint64_t key);

  // Errors: Unavailable, it cannot be opened from here (another user, other process ids);
  // InvalidArgument, it is no segment of ours or has another key.
  static absl::StatusOr<std::unique_ptr<SharedSegment>> Open(SegmentId id, std::uint64_t key);

  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  SegmentId id() const;  // of the maker's
  void WithdrawOffer();  // nobody can open it from now on

  RingWriter& writer() { return writer_; }
  RingReader& reader() { return reader_; }

 private:
  struct Layout;
  SharedSegment(Layout& layout, int descriptor, bool is_maker);
  static absl::StatusOr<Layout*> Map(int descriptor);

  Layout& layout_;
  int descriptor_;  // -1 once withdrawn
  RingWriter writer_;
  RingReader reader_;
};

}  // namespace ranklab::transport
