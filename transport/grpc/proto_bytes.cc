#include "transport/grpc/proto_bytes.h"

#include <algorithm>

#include "core/check.h"
#include "core/status.h"

namespace ranklab::transport {
namespace {

constexpr int kFieldMax = (1 << 29) - 1;

}  // namespace

void ProtoWriter::Varint(int field, std::uint64_t value) {
  if (value != 0) {
    Tag(field, WireType::kVarint);
    RawVarint(value);
  }
}

void ProtoWriter::Fixed32(int field, std::uint32_t value) {
  if (value != 0) {
    Tag(field, WireType::kFixed32);
    RawFixed(value, 4);
  }
}

void ProtoWriter::Fixed64(int field, std::uint64_t value) {
  if (value != 0) {
    Tag(field, WireType::kFixed64);
    RawFixed(value, 8);
  }
}

void ProtoWriter::Text(int field, std::string_view value) {
  if (!value.empty()) {
    BytesFollow(field, static_cast<Bytes>(value.size()));
    bytes_.append(value);
  }
}

void ProtoWriter::Message(int field, const std::string& encoded) {
  BytesFollow(field, static_cast<Bytes>(encoded.size()));
  bytes_ += encoded;
}

void ProtoWriter::BytesFollow(int field, Bytes size) {
  Tag(field, WireType::kBytes);
  RawVarint(static_cast<std::uint64_t>(size));
}

void ProtoWriter::Tag(int field, WireType type) {
  RawVarint(static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(type));
}

void ProtoWriter::RawVarint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    bytes_.push_back(static_cast<char>(value | 0x80));
  }
  bytes_.push_back(static_cast<char>(value));
}

void ProtoWriter::RawFixed(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    bytes_.push_back(static_cast<char>(value >> (8 * i)));
  }
}

ProtoReader::ProtoReader(std::span<const std::span<const std::byte>> slices) : slices_(slices) {
  for (const auto& slice : slices) {
    left_ += static_cast<Bytes>(slice.size());
  }
}

absl::StatusOr<ProtoReader::Tag> ProtoReader::ReadTag() {
  ASSIGN_OR_RETURN(const std::uint64_t tag, ReadVarint());
  const std::uint64_t field = tag >> 3;
  const std::uint64_t type = tag & 7;
  if (field == 0 || field > kFieldMax) {
    return InvalidArgument("no field has number %d", field);
  }
  if (type > 5 || type == 3 || type == 4) {
    return InvalidArgument("field %d has wire type %d, which frames do not use", field, type);
  }
  return Tag{.field = static_cast<int>(field), .type = static_cast<WireType>(type)};
}

absl::StatusOr<std::uint64_t> ProtoReader::ReadVarint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (left_ == 0) {
      return InvalidArgument("cut short within a varint");
    }
    const auto byte = static_cast<std::uint64_t>(TakeByte());
    if (shift == 63 && byte > 1) {
      return InvalidArgument("a varint of more than 64 bits");
    }
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      return value;
    }
  }
  return InvalidArgument("a varint of more than 64 bits");
}

absl::StatusOr<std::uint64_t> ProtoReader::ReadFixed(int bytes) {
  if (left_ < bytes) {
    return InvalidArgument("cut short within a word of %d bytes", bytes);
  }
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) {
    value |= static_cast<std::uint64_t>(TakeByte()) << (8 * i);
  }
  return value;
}

absl::StatusOr<Bytes> ProtoReader::ReadLength() {
  ASSIGN_OR_RETURN(const std::uint64_t length, ReadVarint());
  if (length > static_cast<std::uint64_t>(left_)) {
    return InvalidArgument("cut short: a field of %d bytes with %d left", length, left_);
  }
  return static_cast<Bytes>(length);
}

ProtoReader ProtoReader::Take(Bytes size) {
  RANKLAB_CHECK(size >= 0 && size <= left_);
  ProtoReader part = *this;
  part.left_ = size;
  for (Bytes rest = size; rest > 0;) {
    rest -= static_cast<Bytes>(TakePiece(rest).size());
  }
  return part;
}

std::string ProtoReader::TakeText(Bytes size) {
  std::string text;
  for (const auto& piece : TakePieces(size)) {
    text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  return text;
}

std::vector<std::span<const std::byte>> ProtoReader::TakePieces(Bytes size) {
  RANKLAB_CHECK(size >= 0 && size <= left_);
  std::vector<std::span<const std::byte>> pieces;
  for (Bytes rest = size; rest > 0;) {
    pieces.push_back(TakePiece(rest));
    rest -= static_cast<Bytes>(pieces.back().size());
  }
  return pieces;
}

absl::Status ProtoReader::Skip(WireType type) {
  switch (type) {
    case WireType::kVarint:
      return ReadVarint().status();
    case WireType::kFixed64:
      return ReadFixed(8).status();
    case WireType::kFixed32:
      return ReadFixed(4).status();
    case WireType::kBytes: {
      ASSIGN_OR_RETURN(const Bytes size, ReadLength());
      Take(size);
      return absl::OkStatus();
    }
  }
  return Internal("wire type %d passed ReadTag", static_cast<int>(type));
}

std::byte ProtoReader::TakeByte() { return TakePiece(1).front(); }

std::span<const std::byte> ProtoReader::TakePiece(Bytes at_most) {
  RANKLAB_CHECK(left_ > 0 && at_most > 0);
  while (offset_ == slices_.front().size()) {
    slices_ = slices_.subspan(1);
    offset_ = 0;
  }
  const std::span<const std::byte> rest = slices_.front().subspan(offset_);
  const std::size_t size =
      std::min(rest.size(), static_cast<std::size_t>(std::min(at_most, left_)));
  offset_ += size;
  left_ -= static_cast<Bytes>(size);
  return rest.first(size);
}

}  // namespace ranklab::transport
