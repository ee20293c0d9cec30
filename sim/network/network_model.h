// How messages share a topology's links: one interface, two models. Times in seconds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "fabric/topology.h"

namespace ranklab::sim {

class NetworkModel {
 public:
  using Message = std::int64_t;

  virtual ~NetworkModel() = default;

  // A message enters at `now`, its number the caller's; its route is the topology's for this flow.
  // Requires: now as of the last AdvanceTo; different ranks; size of at least 0 bytes.
  virtual void Begin(Message message, Rank from, Rank to, double size, std::uint64_t flow,
                     double now) = 0;

  // When something happens next, if nothing else begins; nothing: no message is under way.
  virtual std::optional<double> NextInstant() const = 0;

  // Appends the messages that are at the receiver at `when`. Requires: when is NextInstant().
  virtual void AdvanceTo(double when, std::vector<Message>& arrived) = 0;

  // Bytes each link has carried or been promised.
  virtual const std::vector<double>& bytes_of_links() const = 0;
};

// The shaper's arithmetic (fabric/link_model.h), a queue in front of each link, whole nanoseconds:
// messages stream through their path at once, one after the other on each link. The last link is
// queued on when the first byte reaches it. The topology must outlive it.
std::unique_ptr<NetworkModel> MakeLinkNetwork(const fabric::Topology& topology, std::int64_t links);

// Max-min fair sharing (fabric/fair_share.h): after the route's latencies a message has its fair
// rate of all links at once. The topology must outlive it.
std::unique_ptr<NetworkModel> MakeFlowNetwork(const fabric::Topology& topology, std::int64_t links);

}  // namespace ranklab::sim
