#include "transport/shm/shared_segment.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/status.h"

namespace ranklab::transport {
namespace {

constexpr std::uint64_t kMagic = 0x31474553'424c4e52;  // "RNLBSEG1"
// Of a ring. What is written is read soon after: it should still lie in a cache that both share.
constexpr std::size_t kCapacity = 1 << 20;
constexpr const char* kName = "ranklab-segment";

absl::Status SystemError(const char* doing) {
  return Unavailable("shared memory: %s: %s", doing, std::strerror(errno));
}

}  // namespace

struct SharedSegment::Layout {
  std::uint64_t magic;
  std::uint64_t key;
  std::array<RingControl, 2> controls;  // what the maker writes, what it reads
  alignas(4096) std::array<std::array<std::byte, kCapacity>, 2> data;
};

SharedSegment::SharedSegment(Layout& layout, int descriptor, bool is_maker)
    : layout_(layout),
      descriptor_(descriptor),
      writer_(layout.controls[is_maker ? 0 : 1], layout.data[is_maker ? 0 : 1].data(), kCapacity),
      reader_(layout.controls[is_maker ? 1 : 0], layout.data[is_maker ? 1 : 0].data(), kCapacity) {}

SharedSegment::~SharedSegment() {
  WithdrawOffer();
  munmap(&layout_, sizeof(Layout));
}

absl::StatusOr<SharedSegment::Layout*> SharedSegment::Map(int descriptor) {
  void* memory =
      mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, /*offset=*/0);
  if (memory == MAP_FAILED) {
    return SystemError("mmap");
  }
  return static_cast<Layout*>(memory);
}

absl::StatusOr<std::unique_ptr<SharedSegment>> SharedSegment::Make(std::uint64_t key) {
  const int descriptor = memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) {
    return SystemError("memfd_create");
  }
  // Its size is sealed: whoever maps it can rely on it.
  if (ftruncate(descriptor, sizeof(Layout)) != 0 ||
      fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    const absl::Status why = SystemError("its size");
    close(descriptor);
    return why;
  }
  const absl::StatusOr<Layout*> layout = Map(descriptor);
  if (!layout.ok()) {
    close(descriptor);
    return layout.status();
  }
  (*layout)->magic = kMagic;
  (*layout)->key = key;
  return std::unique_ptr<SharedSegment>(new SharedSegment(**layout, descriptor, /*is_maker=*/true));
}

absl::StatusOr<std::unique_ptr<SharedSegment>> SharedSegment::Open(SegmentId id,
                                                                   std::uint64_t key) {
  const std::string path = absl::StrFormat("/proc/%d/fd/%d", id.process, id.descriptor);
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) {
    return SystemError(path.c_str());
  }
  struct stat about {};
  const int seals = fcntl(descriptor, F_GET_SEALS);  // fails on what is no such memory
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(descriptor, &about) != 0 ||
      about.st_size != static_cast<off_t>(sizeof(Layout))) {
    close(descriptor);
    return InvalidArgument("shared memory: %s is no segment of ours", path);
  }
  const absl::StatusOr<Layout*> layout = Map(descriptor);
  close(descriptor);
  RETURN_IF_ERROR(layout.status());
  if ((*layout)->magic != kMagic || (*layout)->key != key) {
    munmap(*layout, sizeof(Layout));
    return InvalidArgument("shared memory: %s is a segment of others", path);
  }
  return std::unique_ptr<SharedSegment>(new SharedSegment(**layout, -1, /*is_maker=*/false));
}

SegmentId SharedSegment::id() const {
  return {.process = static_cast<std::uint32_t>(getpid()),
          .descriptor = static_cast<std::uint32_t>(descriptor_)};
}

void SharedSegment::WithdrawOffer() {
  if (descriptor_ >= 0) {
    close(descriptor_);
    descriptor_ = -1;
  }
}

}  // namespace ranklab::transport
