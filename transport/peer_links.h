// Links of their own between one endpoint and its peers, on top of the modelled port: what an
// injection reshapes.
#pragma once

#include <cstdint>
#include <limits>
#include <map>

#include "core/endpoint.h"
#include "core/random.h"
#include "fabric/link_model.h"

namespace ranklab::transport {

// A number for an endpoint, so that each draws its own stream of chance.
inline std::uint64_t StreamOf(Endpoint endpoint) {
  return (static_cast<std::uint64_t>(endpoint.role) << 32) |
         static_cast<std::uint32_t>(endpoint.rank);
}

class PeerLinks {
 public:
  explicit PeerLinks(std::uint64_t seed) : seed_(seed) {}

  // For messages queued from now on.
  void Shape(Endpoint peer, const fabric::LinkSpec& spec) {
    const auto found = links_.find(peer);
    if (found == links_.end()) {
      links_.try_emplace(peer, spec, Random(seed_).Split(StreamOf(peer)).Next());
    } else {
      found->second.Reshape(spec);
    }
  }

  // The links stay: a message sent now must not pass one that an old shape still holds.
  void Reset() {
    for (auto& [peer, link] : links_) {
      link.Reshape({.bandwidth = {std::numeric_limits<double>::infinity()}});
    }
  }

  // Null for a peer that never had one.
  fabric::LinkModel* Find(Endpoint peer) {
    const auto found = links_.find(peer);
    return found == links_.end() ? nullptr : &found->second;
  }

 private:
  std::uint64_t seed_;
  std::map<Endpoint, fabric::LinkModel> links_;
};

}  // namespace ranklab::transport
