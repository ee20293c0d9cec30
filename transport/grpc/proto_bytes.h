// The protobuf encoding, as much of it as frames need: varints, fixed words, length-delimited
// bytes. Source: protobuf.dev, "Encoding".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

#include "core/units.h"

namespace ranklab::transport {

enum class WireType : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Appends fields to a string. Fields equal to their default are left out, as proto3 does.
class ProtoWriter {
 public:
  void Varint(int field, std::uint64_t value);
  void Fixed32(int field, std::uint32_t value);
  void Fixed64(int field, std::uint64_t value);
  void Text(int field, std::string_view value);
  void Message(int field, const std::string& encoded);  // present even if empty
  void BytesFollow(int field, Bytes size);              // tag and length only

  const std::string& bytes() const { return bytes_; }

 private:
  void Tag(int field, WireType type);
  void RawVarint(std::uint64_t value);
  void RawFixed(std::uint64_t value, int bytes);

  std::string bytes_;
};

// Reads fields from bytes that lie in several slices, without joining them. Borrows the slices.
// Errors, of every call: InvalidArgument, the bytes end early or make no sense.
class ProtoReader {
 public:
  explicit ProtoReader(std::span<const std::span<const std::byte>> slices);

  struct Tag {
    int field = 0;
    WireType type = WireType::kVarint;
  };

  bool AtEnd() const { return left_ == 0; }
  Bytes left() const { return left_; }

  absl::StatusOr<Tag> ReadTag();
  absl::StatusOr<std::uint64_t> ReadVarint();
  absl::StatusOr<std::uint64_t> ReadFixed(int bytes);
  // The length of a length-delimited field, already checked against what is left.
  absl::StatusOr<Bytes> ReadLength();

  // The next `size` bytes, and past them. Requires: 0 <= size <= left().
  ProtoReader Take(Bytes size);
  std::string TakeText(Bytes size);
  std::vector<std::span<const std::byte>> TakePieces(Bytes size);

  absl::Status Skip(WireType type);  // a field's value

 private:
  std::byte TakeByte();
  std::span<const std::byte> TakePiece(Bytes at_most);

  std::span<const std::span<const std::byte>> slices_;
  std::size_t offset_ = 0;  // within the first slice
  Bytes left_ = 0;
};

}  // namespace ranklab::transport
