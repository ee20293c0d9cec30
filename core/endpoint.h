#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "core/units.h"

namespace ranklab {

enum class Role : std::uint8_t { kWorker, kServer };

// A member of a generation.
struct Endpoint {
  Role role = Role::kWorker;
  Rank rank = 0;  // within its role

  // Workers before servers, then by rank.
  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

// "worker 2", "server 0": how messages name it.
inline std::string NameOf(Endpoint endpoint) {
  return (endpoint.role == Role::kWorker ? "worker " : "server ") + std::to_string(endpoint.rank);
}

}  // namespace ranklab
