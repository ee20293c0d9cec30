// Endpoints and bytes, for tests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/endpoint.h"
#include "core/random.h"
#include "transport/transport.h"

namespace ranklab::transport {

inline Endpoint Worker(Rank rank) { return {Role::kWorker, rank}; }
inline Endpoint Server(Rank rank) { return {Role::kServer, rank}; }

using Storage = std::vector<std::byte>;

inline Storage BytesOf(std::string_view text) {
  Storage bytes;
  for (const char c : text) {
    bytes.push_back(static_cast<std::byte>(c));
  }
  return bytes;
}
inline Storage RandomBytes(std::size_t size, Random& random) {
  Storage bytes(size);
  for (std::size_t at = 0; at < size; at += 8) {
    const std::uint64_t next = random.Next();
    std::memcpy(bytes.data() + at, &next, std::min<std::size_t>(8, size - at));
  }
  return bytes;
}
inline Payload PayloadOf(const Storage& bytes) {
  return {bytes.data(), static_cast<Bytes>(bytes.size())};
}
inline Landing LandingOf(Storage& bytes) {
  return {bytes.data(), static_cast<Bytes>(bytes.size())};
}

}  // namespace ranklab::transport
