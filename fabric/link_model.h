// One directed link, and a path of links, under the alpha-beta model: moving n bytes takes
// alpha + n / bandwidth. Source: R. W. Hockney, "The communication challenge for MPP", Parallel
// Computing 20(3), 1994.
#pragma once

#include <cstdint>
#include <span>

#include "core/units.h"

namespace ranklab::fabric {

struct LinkSpec {
  Nanos alpha{};        // latency; does not occupy the link (model M2 of the reference)
  Bandwidth bandwidth;  // 1 / beta
  Nanos jitter{};       // added latency, uniform in [0, jitter]
  double loss_probability =
      0.0;  // of a message, in [0, 1]; a loss costs the retransmission time-out
  Nanos retransmit_after{};
};

// A link's queue as arithmetic: no clock, no sockets.
class LinkModel {
 public:
  LinkModel(const LinkSpec& spec, std::uint64_t seed);

  // Holds for messages admitted from now on; those under way keep the old shape.
  void Reshape(const LinkSpec& spec);

  const LinkSpec& spec() const { return spec_; }
  Nanos busy_until() const { return busy_until_; }

 private:
  friend struct Path;
  LinkSpec spec_;
  Nanos busy_until_{};
  std::uint64_t random_state_;
};

struct Passage {
  Nanos
      starts{};  // first byte enters the first link (after the messages ahead of it on any of them)
  Nanos leaves{};   // last byte has left the sender
  Nanos arrives{};  // last byte is at the receiver
};

// A message streams through all links of its path at once (cut-through, not store-and-forward): the
// smallest bandwidth counts once, the alphas add up. It waits for the sender's side and, behind an
// unbounded switch buffer, for the receiver's side: two calls, because live the two sides are two
// processes. A simulator makes both calls itself and gets the same instants.
//   sender:    starts   = max(now, busy of the sender's links);  leaves = starts + n / min bandwidth
//   receiver:  arrives  = max(starts, busy of the receiver's links) + n / min bandwidth + sum(alpha)
struct Path {
  // Queues `size` bytes at `now` on the links of the sender's side (its port, the link between).
  // Requires: size >= 0, and `now` never goes back on a link. `arrives` is when the message would
  // arrive if the receiver's port were free and no slower.
  static Passage Depart(Nanos now, Bytes size, std::span<LinkModel* const> sender_links);

  // Queues the same message, whose first byte left at `starts`, on the receiver's side. `floor` is
  // the passage that Depart returned, seen from the receiver: it can never arrive before that.
  static Passage Arrive(Nanos starts, Nanos floor_arrives, Bytes size,
                        std::span<LinkModel* const> receiver_links);
};

}  // namespace ranklab::fabric
