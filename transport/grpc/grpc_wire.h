// A generation's wire over gRPC: a PeerLink for each peer.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "transport/grpc/peer_link.h"
#include "transport/grpc/rendezvous.h"
#include "transport/wire.h"

namespace ranklab::transport {

class GrpcWire final : public Wire {
 public:
  // Dials, and runs `ready`, as the Rendezvous does.
  GrpcWire(EventLoop& loop, const WireOptions& options, Rendezvous::DialFn dial, DoneFn ready);
  ~GrpcWire() override;

  // Where the port brings streams that peers opened. Its life ends with the wire's or with Abort.
  std::weak_ptr<Rendezvous> rendezvous() const { return rendezvous_; }

  Endpoint self() const override { return self_; }
  void Deliver(WireSink& sink) override;
  void Send(Endpoint to, const MessageHeader& header, Payload body, DoneFn sent) override;
  void Abort(absl::Status reason) override;
  WireCounters counters(Endpoint peer) const override;

 private:
  void PeerLost(Endpoint peer, const absl::Status& why);
  PeerLink& LinkTo(Endpoint peer) const;

  const Endpoint self_;
  WireSink* sink_ = nullptr;
  bool aborted_ = false;
  std::map<Endpoint, std::shared_ptr<PeerLink>> links_;
  std::map<Endpoint, absl::Status> lost_unheard_;  // before there was a sink to tell
  std::shared_ptr<Rendezvous> rendezvous_;         // last: it calls the links
};

}  // namespace ranklab::transport
