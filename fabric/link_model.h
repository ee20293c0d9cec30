// Directed links, and paths of links, under the alpha-beta model: moving n bytes takes
// alpha + n / bandwidth, and alpha is latency only: it does not hold the link (model M2 of the cost
// formulas in fabric/cost.h). Source: R. W. Hockney, "The communication challenge for MPP",
// Parallel Computing 20(3), 1994.
#pragma once

#include <cstdint>
#include <span>

#include "core/random.h"
#include "core/units.h"

namespace ranklab::fabric {

struct LinkSpec {
  Nanos alpha{};        // latency of the first byte
  Bandwidth bandwidth;  // 1 / beta; above 0, infinite where the link does not limit
  Nanos jitter{};       // added latency, uniform in [0, jitter]
  // Of a message, in [0, 1]. Each loss costs the retransmission time-out once more, at most 15
  // times (Linux's tcp_retries2); the second transmission does not hold the link again.
  double loss_probability = 0.0;
  Nanos retransmit_after{};
};

// n / bandwidth, to the nearest nanosecond; saturates at Nanos::max(). Requires: size >= 0.
Nanos TransferTime(Bytes size, Bandwidth bandwidth);

// A link's queue as arithmetic: no clock, no sockets. First in, first out.
class LinkModel {
 public:
  // Requires: bandwidth > 0, no negative time, a probability. The seed decides jitter and loss.
  LinkModel(const LinkSpec& spec, std::uint64_t seed);

  // Holds for messages admitted from now on; those under way keep the old shape.
  void Reshape(const LinkSpec& spec);

  const LinkSpec& spec() const { return spec_; }
  Nanos busy_until() const { return busy_until_; }

 private:
  friend struct Path;
  Nanos DrawDelay();  // alpha, jitter and losses of the next message

  LinkSpec spec_;
  Nanos busy_until_{};
  Random random_;
};

struct Passage {
  Nanos starts{};   // the first byte enters the last link of this side
  Nanos leaves{};   // the last byte has left this side's links
  Nanos arrives{};  // the last byte is at the receiver
};

// A message streams through the links of its path at once (cut-through, not store-and-forward),
// with an unbounded buffer in front of each: it begins on a link when it has begun on the one
// before and the messages ahead of it there are through.
//
//   begins(i)     = max(begins(i-1), busy_until(i))      begins(0) is the argument of the call
//   busy_until(i) = begins(i) + n / bandwidth(i)         a link is held for its own n / bandwidth
//   leaves        = max over i of busy_until(i)          on an idle path: the slowest link, once
//   arrives       = leaves + sum of the links' delays    delay: alpha, jitter, losses
//
// The path is cut in two where the switch is, because live the two sides are two processes. A
// simulator makes both calls itself and gets the same instants: Arrive's floor is Depart's
// `arrives`, and `reaches` is Depart's `starts` plus the alpha of the ports. Instants saturate at
// Nanos::max(); none is before the call's. Jitter may let `arrives` of two messages of one path
// cross: who delivers in order takes the later.
struct Path {
  // Queues `size` bytes at `now` on the sender's side: its port, then the link to the peer, if that
  // has one. `arrives` is when the message arrives unless the receiver's port is busy or slower.
  static Passage Depart(Nanos now, Bytes size, std::span<LinkModel* const> sender_links);

  // Queues the same message on the receiver's side, which its first byte reaches at `reaches`.
  // `arrives` is not before `floor_arrives`, what the sender's side allows. A message that jitter,
  // loss or its own link delays keeps its turn at the port and does not hold up the others.
  static Passage Arrive(Nanos reaches, Nanos floor_arrives, Bytes size,
                        std::span<LinkModel* const> receiver_links);

 private:
  static Passage Cross(Nanos now, Bytes size, std::span<LinkModel* const> links);
};

}  // namespace ranklab::fabric
