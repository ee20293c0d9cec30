// Bytes of a message on a TCP connection. Pure.
//
//   header  kHeaderBytes, little-endian, the last 8 its XXH3-64 checksum
//   error   header.error, of a reply that failed
//   body    header.size bytes
//   trailer XXH3-64 of error and body, if the header says so. Behind the body, so that both sides
//           hash what is in the cache because it is being sent or was just received.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <absl/status/statusor.h>

#include "transport/wire.h"

namespace ranklab::transport {

inline constexpr std::size_t kHeaderBytes = 144;
inline constexpr std::size_t kTrailerBytes = 8;
inline constexpr std::size_t kErrorBytesMax = 1024;
inline constexpr Bytes kBodyBytesMax = Bytes{1} << 40;

using HeaderBytes = std::array<std::byte, kHeaderBytes>;
using TrailerBytes = std::array<std::byte, kTrailerBytes>;

// Requires: header.error of at most kErrorBytesMax.
HeaderBytes EncodeHeader(const MessageHeader& header, bool has_trailer);

struct FrameHeader {
  MessageHeader message;  // without its error
  std::size_t error_bytes = 0;
  bool has_trailer = false;
};

// Errors: InvalidArgument, not ours, of another version, or with impossible fields; DataLoss, wrong
// checksum.
absl::StatusOr<FrameHeader> DecodeHeader(std::span<const std::byte, kHeaderBytes> bytes);

// XXH3-64 over bytes that come piece by piece.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void Reset();
  void Add(const std::byte* data, Bytes size);
  TrailerBytes Digest() const;

 private:
  void* state_;  // the library's, which is large and aligned its own way
};

std::uint64_t ChecksumOf(std::span<const std::byte> bytes);

}  // namespace ranklab::transport
