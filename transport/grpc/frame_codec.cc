#include "transport/grpc/frame_codec.h"

#include <bit>
#include <limits>
#include <memory>
#include <type_traits>

#include "core/check.h"
#include "core/status.h"
#include "core/xxh3.h"
#include "transport/grpc/proto_bytes.h"

namespace ranklab::transport {
namespace {

// Field numbers of Frame in wire.proto.
constexpr int kHelloField = 1;
constexpr int kHeaderField = 2;
constexpr int kChecksumField = 3;
constexpr int kPayloadField = 15;

// A varint field of the schema: any integer, bool, enum or duration. Doubles and the Hello's words
// of chance are fixed-width and marked so.
template <typename T>
struct Fixed {
  T& value;
};
template <typename T>
Fixed(T&) -> Fixed<T>;

// The fields of Hello and Header, listed once for writing and for reading.
template <typename HelloType, typename Visitor>
void VisitHello(HelloType& hello, Visitor&& visit) {
  visit(1, Fixed{hello.magic});
  visit(2, hello.generation);
  visit(3, Fixed{hello.secret});
  visit(4, hello.from.role);
  visit(5, hello.from.rank);
  visit(6, hello.to.role);
  visit(7, hello.to.rank);
}

template <typename HeaderType, typename Visitor>
void VisitHeader(HeaderType& header, Visitor&& visit) {
  visit(1, header.kind);
  visit(2, header.envelope.generation);
  visit(3, header.envelope.group);
  visit(4, header.envelope.sequence);
  visit(5, header.envelope.lane);
  visit(6, header.envelope.part);
  visit(7, header.size);
  visit(8, header.request.method);
  visit(9, header.request.id);
  visit(10, header.request.step);
  visit(11, header.request.begin);
  visit(12, header.request.end);
  visit(13, Fixed{header.request.weight});
  visit(14, header.request.ends_step);
  visit(15, header.request.overflow);
  visit(16, header.reply.clock);
  visit(17, header.reply.version);
  visit(18, header.reply.skipped);
  visit(19, header.status);
  visit(20, header.error);
  visit(21, header.departs);
  visit(22, header.due);
}

// ---- writing ------------------------------------------------------------------------------------

std::size_t Utf8Length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xc2 ? 0
                             : lead < 0xe0 ? 2
                             : lead < 0xf0 ? 3
                             : lead < 0xf5 ? 4
                                           : 0;
  if (length > text.size()) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) {
      return 0;
    }
  }
  // Overlong forms, surrogates and what lies beyond U+10FFFF show in the second byte.
  const unsigned char second = length > 2 ? static_cast<unsigned char>(text[1]) : 0x80;
  const bool wrong = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
                     (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f);
  return wrong ? 0 : length;
}

// Protobuf's parsers refuse a frame whose string is not valid UTF-8; an error's text may come from
// anywhere.
std::string ShortValidText(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const std::size_t length = Utf8Length(text);
    const std::string_view next = length == 0 ? std::string_view("?") : text.substr(0, length);
    if (valid.size() + next.size() > static_cast<std::size_t>(kErrorBytesMax)) {
      break;
    }
    valid.append(next);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return valid;
}

struct FieldWriter {
  ProtoWriter& writer;

  template <typename T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
  void operator()(int field, T value) {
    // Sign extension to 64 bits is protobuf's encoding of negative int32 and int64 alike.
    writer.Varint(field, static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
  }
  void operator()(int field, std::uint64_t value) { writer.Varint(field, value); }
  void operator()(int field, Nanos value) { (*this)(field, std::int64_t{value.count()}); }
  void operator()(int field, const std::string& value) {
    writer.Text(field, ShortValidText(value));
  }
  void operator()(int field, Fixed<const std::uint32_t> word) { writer.Fixed32(field, word.value); }
  void operator()(int field, Fixed<const std::uint64_t> word) { writer.Fixed64(field, word.value); }
  void operator()(int field, Fixed<const double> word) {
    writer.Fixed64(field, std::bit_cast<std::uint64_t>(word.value));
  }
};

// ---- reading ------------------------------------------------------------------------------------

// Reads the value of one field into the member that has its number.
class FieldReader {
 public:
  FieldReader(ProtoReader& reader, ProtoReader::Tag tag) : reader_(reader), tag_(tag) {}

  template <typename Member>
  void operator()(int field, Member&& member) {
    if (field == tag_.field) {
      known_ = true;
      status_ = Read(member);
    }
  }

  absl::Status Finish() { return known_ ? status_ : reader_.Skip(tag_.type); }

 private:
  absl::Status Expect(WireType type) const {
    if (tag_.type != type) {
      return InvalidArgument("field %d has wire type %d instead of %d", tag_.field,
                             static_cast<int>(tag_.type), static_cast<int>(type));
    }
    return absl::OkStatus();
  }

  template <typename T>
  requires std::is_integral_v<T> absl::Status Read(T& member) {
    RETURN_IF_ERROR(Expect(WireType::kVarint));
    ASSIGN_OR_RETURN(const std::uint64_t value, reader_.ReadVarint());
    if constexpr (std::is_same_v<T, bool>) {
      member = value != 0;
    } else {
      member = static_cast<T>(value);
      const std::uint64_t back = std::is_signed_v<T>
                                     ? static_cast<std::uint64_t>(static_cast<std::int64_t>(member))
                                     : static_cast<std::uint64_t>(member);
      if (back != value) {
        return InvalidArgument("field %d is %d, out of range", tag_.field, value);
      }
    }
    return absl::OkStatus();
  }
  absl::Status Read(MessageKind& member) { return ReadEnum(member, MessageKind::kHeld); }
  absl::Status Read(Role& member) { return ReadEnum(member, Role::kServer); }
  template <typename Enum>
  absl::Status ReadEnum(Enum& member, Enum last) {
    std::uint64_t value = 0;
    RETURN_IF_ERROR(Read(value));
    if (value > static_cast<std::uint64_t>(last)) {
      return InvalidArgument("field %d is %d, at most %d is known", tag_.field, value,
                             static_cast<int>(last));
    }
    member = static_cast<Enum>(value);
    return absl::OkStatus();
  }
  absl::Status Read(Nanos& member) {
    std::int64_t count = 0;
    RETURN_IF_ERROR(Read(count));
    member = Nanos(count);
    return absl::OkStatus();
  }
  absl::Status Read(std::string& member) {
    RETURN_IF_ERROR(Expect(WireType::kBytes));
    ASSIGN_OR_RETURN(const Bytes size, reader_.ReadLength());
    if (size > kErrorBytesMax) {
      return InvalidArgument("field %d has %d bytes, at most %d are allowed", tag_.field, size,
                             kErrorBytesMax);
    }
    member = reader_.TakeText(size);
    return absl::OkStatus();
  }
  template <typename T>
  absl::Status Read(Fixed<T>& member) {
    constexpr bool kWide = sizeof(T) == 8;
    RETURN_IF_ERROR(Expect(kWide ? WireType::kFixed64 : WireType::kFixed32));
    ASSIGN_OR_RETURN(const std::uint64_t value, reader_.ReadFixed(sizeof(T)));
    if constexpr (kWide) {
      member.value = std::bit_cast<T>(value);
    } else {
      member.value = static_cast<T>(value);
    }
    return absl::OkStatus();
  }

  ProtoReader& reader_;
  const ProtoReader::Tag tag_;
  bool known_ = false;
  absl::Status status_;
};

absl::StatusOr<Hello> ReadHello(ProtoReader reader) {
  Hello hello;
  hello.magic = 0;  // not sent: not ours
  while (!reader.AtEnd()) {
    ASSIGN_OR_RETURN(const ProtoReader::Tag tag, reader.ReadTag());
    FieldReader field(reader, tag);
    VisitHello(hello, field);
    RETURN_IF_ERROR(Annotate(field.Finish(), "hello"));
  }
  if (hello.from.rank < 0 || hello.to.rank < 0) {
    return InvalidArgument("hello: from rank %d to rank %d", hello.from.rank, hello.to.rank);
  }
  return hello;
}

absl::StatusOr<MessageHeader> ReadHeader(ProtoReader reader) {
  MessageHeader header;
  while (!reader.AtEnd()) {
    ASSIGN_OR_RETURN(const ProtoReader::Tag tag, reader.ReadTag());
    FieldReader field(reader, tag);
    VisitHeader(header, field);
    RETURN_IF_ERROR(Annotate(field.Finish(), "header"));
  }
  if (header.size < 0) {
    return InvalidArgument("header: a message of %d bytes",
                           static_cast<std::uint64_t>(header.size));
  }
  header.request.generation = header.envelope.generation;
  return header;
}

std::uint64_t ChecksumOf(const std::vector<ByteSpan>& pieces) {
  if (pieces.size() == 1) {
    return XXH3_64bits(pieces.front().data(), pieces.front().size());
  }
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  RANKLAB_CHECK(state != nullptr, "no memory for a checksum's state");
  XXH3_64bits_reset(state.get());
  for (const ByteSpan& piece : pieces) {
    XXH3_64bits_update(state.get(), piece.data(), piece.size());
  }
  return XXH3_64bits_digest(state.get());
}

// Reads one of Frame's own fields. `checksum` is kept apart: it may come after the payload.
absl::Status ReadFrameField(ProtoReader& reader, ProtoReader::Tag tag, Frame& frame,
                            std::uint64_t& checksum) {
  const bool is_bytes =
      tag.field == kHelloField || tag.field == kHeaderField || tag.field == kPayloadField;
  if ((is_bytes && tag.type != WireType::kBytes) ||
      (tag.field == kChecksumField && tag.type != WireType::kFixed64)) {
    return InvalidArgument("field %d has wire type %d", tag.field, static_cast<int>(tag.type));
  }
  if (tag.field == kChecksumField) {
    ASSIGN_OR_RETURN(checksum, reader.ReadFixed(8));
    return absl::OkStatus();
  }
  if (!is_bytes) {
    return reader.Skip(tag.type);
  }
  const bool repeated = (tag.field == kHelloField && frame.hello.has_value()) ||
                        (tag.field == kHeaderField && frame.header.has_value()) ||
                        (tag.field == kPayloadField && !frame.payload.empty());
  if (repeated) {
    return InvalidArgument("field %d comes twice", tag.field);
  }
  ASSIGN_OR_RETURN(const Bytes size, reader.ReadLength());
  if (tag.field == kPayloadField) {
    frame.payload = reader.TakePieces(size);
    frame.payload_size = size;
  } else if (tag.field == kHelloField) {
    ASSIGN_OR_RETURN(frame.hello, ReadHello(reader.Take(size)));
  } else {
    ASSIGN_OR_RETURN(frame.header, ReadHeader(reader.Take(size)));
  }
  return absl::OkStatus();
}

}  // namespace

std::string EncodeHello(const Hello& hello) {
  ProtoWriter fields;
  VisitHello(hello, FieldWriter{fields});
  ProtoWriter frame;
  frame.Message(kHelloField, fields.bytes());
  return frame.bytes();
}

std::string EncodeFrame(const MessageHeader* header, Payload payload) {
  RANKLAB_CHECK(payload.size >= 0 && payload.size <= kFramePayload, "%d bytes", payload.size);
  RANKLAB_CHECK(payload.data != nullptr || payload.size == 0,
                "a body without bytes cannot travel over gRPC");
  ProtoWriter frame;
  if (header != nullptr) {
    ProtoWriter fields;
    VisitHeader(*header, FieldWriter{fields});
    frame.Message(kHeaderField, fields.bytes());
  }
  if (payload.size > 0) {
    frame.Fixed64(kChecksumField,
                  XXH3_64bits(payload.data, static_cast<std::size_t>(payload.size)));
    frame.BytesFollow(kPayloadField, payload.size);
  }
  return frame.bytes();
}

absl::StatusOr<Frame> DecodeFrame(std::span<const ByteSpan> slices) {
  ProtoReader reader(slices);
  if (reader.left() > kFrameBytesMax) {
    return InvalidArgument("a frame of %d bytes; at most %d are allowed", reader.left(),
                           kFrameBytesMax);
  }
  Frame frame;
  frame.encoded_size = reader.left();
  std::uint64_t checksum = 0;
  while (!reader.AtEnd()) {
    ASSIGN_OR_RETURN(const ProtoReader::Tag tag, reader.ReadTag());
    RETURN_IF_ERROR(ReadFrameField(reader, tag, frame, checksum));
  }
  if (frame.payload_size > 0 && ChecksumOf(frame.payload) != checksum) {
    return InvalidArgument("the checksum of %d payload bytes does not match", frame.payload_size);
  }
  return frame;
}

}  // namespace ranklab::transport
