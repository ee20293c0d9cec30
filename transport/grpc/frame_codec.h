// Frames of the tensor stream to bytes and back, compatible with protos/wire.proto. Written by hand
// so that a payload stays where it is: the encoder makes the few bytes in front of it, the decoder
// points at it inside the received slices. Pure, no gRPC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "core/endpoint.h"
#include "core/units.h"
#include "transport/transport.h"
#include "transport/wire.h"

namespace ranklab::transport {

inline constexpr std::uint32_t kWireMagic = 0x31574c52;  // "RLW1", least significant byte first
inline constexpr Bytes kFramePayload = 1 << 20;          // a longer body travels as several frames
inline constexpr Bytes kFrameBytesMax = 4 << 20;         // received: longer frames are refused
inline constexpr Bytes kErrorBytesMax = 1 << 10;         // MessageHeader::error

// Who dials whom, and the proof of belonging: first frame in each direction.
struct Hello {
  std::uint32_t magic = kWireMagic;
  std::uint32_t generation = 0;
  std::uint64_t secret = 0;
  Endpoint from;
  Endpoint to;

  friend bool operator==(const Hello&, const Hello&) = default;
};

using ByteSpan = std::span<const std::byte>;

// What a frame holds. `payload` are pieces of the decoded bytes, in order, none empty.
struct Frame {
  std::optional<Hello> hello;
  std::optional<MessageHeader> header;
  std::vector<ByteSpan> payload;
  Bytes payload_size = 0;
  Bytes encoded_size = 0;  // of the whole frame
};

// A whole frame with a Hello.
std::string EncodeHello(const Hello& hello);

// Everything of a frame in front of its payload's bytes: the header (null after a message's first
// frame), the payload's checksum and its length. The header's error is cut to kErrorBytesMax and
// made valid UTF-8, as protobuf demands of a string.
// Requires: 0 <= payload.size <= kFramePayload, payload.data unless the size is 0.
// Cost: one XXH3 pass over the payload.
std::string EncodeFrame(const MessageHeader* header, Payload payload);

// Reads one frame that lies in `slices`; verifies the payload's checksum. Fields that wire.proto
// does not know are skipped, as protobuf does. A header's request.generation is its envelope's.
// Errors: InvalidArgument, with what is wrong: cut short, longer than kFrameBytesMax, values out of
// range, checksum. Allocates no more than the slices' own size.
absl::StatusOr<Frame> DecodeFrame(std::span<const ByteSpan> slices);

}  // namespace ranklab::transport
