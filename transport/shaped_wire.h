// Makes a wire behave like a path of the modelled fabric. The sender queues a message on its port
// (fabric::LinkModel) and lets it go when the port is free; the receiver queues it on its own port
// and delivers it when its last byte would have arrived. N senders to one receiver thus share the
// receiver's port, in different processes, without a central clock: `departs` travels with the
// message. Credit messages are ours, not the modelled program's, and pass unshaped.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/event_loop.h"
#include "fabric/link_model.h"
#include "transport/wire.h"

namespace ranklab::transport {

struct ShapeOptions {
  // Of every endpoint, each direction, already dilated by time_scale. Its alpha counts once a
  // message, at the sender's side.
  fabric::LinkSpec port;
  std::uint64_t seed = 0;   // for jitter and loss
  Nanos clock_offset{};     // cluster's clock = loop's clock + offset
};

// How well the shaper kept its word. Lateness = real completion minus modelled arrival, where
// positive; a message that is late by more than max(5 % of its modelled duration, 0.2 ms) could not
// keep up.
struct ShapeReport {
  std::int64_t messages = 0;
  std::int64_t could_not_keep_up = 0;
  std::vector<std::int64_t> lateness_log2_us;  // [k]: late by [2^k, 2^(k+1)) us; [0]: below 2 us
  Nanos lateness_max{};
  // Of messages of at least 64 KiB, in real (dilated) time: bytes / (arrived - departs - alpha).
  double achieved_bandwidth_median = 0;  // bytes per second
  double achieved_bandwidth_p90 = 0;     // slower than this in 10 % of the messages
  // Of messages of at most 1 KiB: arrived - departs.
  Nanos latency_median{};
  Nanos latency_p90{};
};

class ShapedWire final : public Wire {
 public:
  ShapedWire(EventLoop& loop, std::unique_ptr<Wire> inner, const ShapeOptions& options);
  ~ShapedWire() override;

  Endpoint self() const override;
  void Deliver(WireSink& sink) override;
  void Send(Endpoint to, const MessageHeader& header, Payload body, DoneFn sent) override;
  void Abort(absl::Status reason) override;
  WireCounters counters(Endpoint peer) const override;

  // A link of its own between this endpoint and `peer`, in the direction from here, on top of both
  // ports; an injection reshapes it. Dilated like the ports.
  void ShapeLink(Endpoint peer, const fabric::LinkSpec& spec);
  void ResetLinks();

  ShapeReport Report() const;

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace ranklab::transport
