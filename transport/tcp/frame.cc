#include "transport/tcp/frame.h"

#include <cstring>

#include "core/check.h"
#include "core/status.h"
#include "core/xxh3.h"
#include "transport/tcp/byte_order.h"

namespace ranklab::transport {
namespace {

constexpr std::uint32_t kMagic = 0x314d4c52;  // "RLM1"
constexpr std::uint16_t kVersion = 1;

enum Flag : std::uint32_t {
  kHasTrailer = 1,
  kEndsStep = 2,
  kOverflow = 4,
  kSkipped = 8,
  kKnownFlags = 15,
};

std::uint32_t FlagsOf(const MessageHeader& header, bool has_trailer) {
  return (has_trailer ? kHasTrailer : 0U) | (header.request.ends_step ? kEndsStep : 0U) |
         (header.request.overflow ? kOverflow : 0U) | (header.reply.skipped ? kSkipped : 0U);
}

MessageHeader TakeFields(FieldReader& in, std::uint32_t flags) {
  MessageHeader header;
  header.envelope.generation = in.Take<std::uint32_t>();
  header.envelope.group = in.Take<std::uint32_t>();
  header.envelope.lane = in.Take<std::uint32_t>();
  header.envelope.part = in.Take<std::uint32_t>();
  header.envelope.sequence = in.Take<std::uint64_t>();
  header.request.generation = in.Take<std::uint32_t>();
  header.request.method = in.Take<std::uint32_t>();
  header.request.id = in.Take<std::uint64_t>();
  header.request.step = in.Take<std::int64_t>();
  header.request.begin = in.Take<std::int64_t>();
  header.request.end = in.Take<std::int64_t>();
  header.request.weight = in.Take<double>();
  header.request.ends_step = (flags & kEndsStep) != 0;
  header.request.overflow = (flags & kOverflow) != 0;
  header.reply.clock = in.Take<std::int64_t>();
  header.reply.version = in.Take<std::int64_t>();
  header.reply.skipped = (flags & kSkipped) != 0;
  header.departs = Nanos(in.Take<std::int64_t>());
  header.due = Nanos(in.Take<std::int64_t>());
  header.size = in.Take<std::int64_t>();
  header.status = in.Take<std::int32_t>();
  return header;
}

absl::Status CheckFields(const FrameHeader& frame, std::uint32_t kind, std::uint32_t flags) {
  if (kind > static_cast<std::uint32_t>(MessageKind::kHeld)) {
    return InvalidArgument("a frame of unknown kind %d", kind);
  }
  if ((flags & ~std::uint32_t{kKnownFlags}) != 0) {
    return InvalidArgument("a frame with unknown flags %#x", flags);
  }
  if (frame.message.size < 0 || frame.message.size > kBodyBytesMax) {
    return InvalidArgument("a frame whose body would have %d bytes", frame.message.size);
  }
  if (frame.error_bytes > kErrorBytesMax) {
    return InvalidArgument("a frame whose error would have %d bytes", frame.error_bytes);
  }
  return absl::OkStatus();
}

}  // namespace

HeaderBytes EncodeHeader(const MessageHeader& header, bool has_trailer) {
  RANKLAB_CHECK(header.error.size() <= kErrorBytesMax, "%d bytes", header.error.size());
  HeaderBytes bytes{};
  FieldWriter out(bytes);
  out.Put(kMagic);
  out.Put(kVersion);
  out.Put(static_cast<std::uint16_t>(header.kind));
  out.Put(FlagsOf(header, has_trailer));
  out.Put(header.envelope.generation);
  out.Put(header.envelope.group);
  out.Put(header.envelope.lane);
  out.Put(header.envelope.part);
  out.Put(header.envelope.sequence);
  out.Put(header.request.generation);
  out.Put(header.request.method);
  out.Put(header.request.id);
  out.Put(header.request.step);
  out.Put(header.request.begin);
  out.Put(header.request.end);
  out.Put(header.request.weight);
  out.Put(header.reply.clock);
  out.Put(header.reply.version);
  out.Put(std::int64_t{header.departs.count()});
  out.Put(std::int64_t{header.due.count()});
  out.Put(header.size);
  out.Put(header.status);
  out.Put(static_cast<std::uint32_t>(header.error.size()));
  RANKLAB_CHECK(out.written().size() + sizeof(std::uint64_t) <= kHeaderBytes);
  const std::uint64_t checksum = ChecksumOf(std::span(bytes).first(kHeaderBytes - 8));
  std::memcpy(bytes.data() + kHeaderBytes - 8, &checksum, 8);
  return bytes;
}

absl::StatusOr<FrameHeader> DecodeHeader(std::span<const std::byte, kHeaderBytes> bytes) {
  FieldReader in(bytes);
  if (const auto magic = in.Take<std::uint32_t>(); magic != kMagic) {
    return InvalidArgument("bytes that are no frame of ours (magic %#010x)", magic);
  }
  if (const auto version = in.Take<std::uint16_t>(); version != kVersion) {
    return InvalidArgument("a frame of protocol version %d, this program speaks %d", version,
                           kVersion);
  }
  std::uint64_t checksum = 0;
  std::memcpy(&checksum, bytes.data() + kHeaderBytes - 8, 8);
  if (checksum != ChecksumOf(bytes.first(kHeaderBytes - 8))) {
    return MakeError(absl::StatusCode::kDataLoss, "a frame header with a wrong checksum");
  }
  const auto kind = in.Take<std::uint16_t>();
  const auto flags = in.Take<std::uint32_t>();
  FrameHeader frame;
  frame.message = TakeFields(in, flags);
  frame.message.kind = static_cast<MessageKind>(kind);
  frame.error_bytes = in.Take<std::uint32_t>();
  frame.has_trailer = (flags & kHasTrailer) != 0;
  RETURN_IF_ERROR(CheckFields(frame, kind, flags));
  return frame;
}

namespace {
XXH3_state_t* Of(void* state) { return static_cast<XXH3_state_t*>(state); }
}  // namespace

Checksum::Checksum() : state_(XXH3_createState()) {
  RANKLAB_CHECK(state_ != nullptr, "out of memory");
  Reset();
}
Checksum::~Checksum() { XXH3_freeState(Of(state_)); }

void Checksum::Reset() { XXH3_64bits_reset(Of(state_)); }

void Checksum::Add(const std::byte* data, Bytes size) {
  XXH3_64bits_update(Of(state_), data, static_cast<std::size_t>(size));
}

TrailerBytes Checksum::Digest() const {
  const std::uint64_t digest = XXH3_64bits_digest(Of(state_));
  TrailerBytes bytes;
  std::memcpy(bytes.data(), &digest, bytes.size());
  return bytes;
}

std::uint64_t ChecksumOf(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace ranklab::transport
