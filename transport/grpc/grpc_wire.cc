#include "transport/grpc/grpc_wire.h"

#include <utility>

#include "core/check.h"
#include "core/status.h"

namespace ranklab::transport {

GrpcWire::GrpcWire(EventLoop& loop, const WireOptions& options, Rendezvous::DialFn dial,
                   DoneFn ready)
    : self_(options.self) {
  for (const WirePeer& peer : options.peers) {
    links_[peer.endpoint] = std::make_shared<PeerLink>(
        loop, peer,
        [this, endpoint = peer.endpoint](const absl::Status& why) { PeerLost(endpoint, why); });
  }
  rendezvous_ = std::make_shared<Rendezvous>(
      loop, options, std::move(dial),
      [this](Endpoint peer, std::shared_ptr<FrameStream> stream) {
        LinkTo(peer).Join(std::move(stream));
      },
      std::move(ready));
}

GrpcWire::~GrpcWire() { Abort(Aborted("%s has closed its wire", NameOf(self_))); }

void GrpcWire::Deliver(WireSink& sink) {
  RANKLAB_CHECK(sink_ == nullptr, "Deliver is called once");
  sink_ = &sink;
  for (const auto& [endpoint, link] : links_) {
    link->Deliver(sink);
  }
  for (const auto& [endpoint, why] : std::exchange(lost_unheard_, {})) {
    sink.Lost(endpoint, why);
  }
}

void GrpcWire::Send(Endpoint to, const MessageHeader& header, Payload body, DoneFn sent) {
  LinkTo(to).Send(header, body, std::move(sent));
}

void GrpcWire::Abort(absl::Status reason) {
  if (std::exchange(aborted_, true)) {
    return;
  }
  rendezvous_->Cancel(reason);
  rendezvous_.reset();
  for (const auto& [endpoint, link] : links_) {
    link->End(reason);
  }
}

WireCounters GrpcWire::counters(Endpoint peer) const { return LinkTo(peer).counters(); }

void GrpcWire::PeerLost(Endpoint peer, const absl::Status& why) {
  rendezvous_->Lost(why);
  if (sink_ == nullptr) {
    lost_unheard_.emplace(peer, why);
    return;
  }
  sink_->Lost(peer, why);  // last: it may destroy the wire
}

PeerLink& GrpcWire::LinkTo(Endpoint peer) const {
  const auto link = links_.find(peer);
  RANKLAB_CHECK(link != links_.end(), "%s has no wire to %s", NameOf(self_), NameOf(peer));
  return *link->second;
}

}  // namespace ranklab::transport
