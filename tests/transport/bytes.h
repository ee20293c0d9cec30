// Endpoints and bytes, for tests.
#pragma once

#include <cstddef>
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
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(random.Next());
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
