// The receiver's side of a shaped wire: admits messages to the modelled port in the order in which
// they left, and delivers each when its last byte would have arrived.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <tuple>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "core/endpoint.h"
#include "fabric/link_model.h"
#include "transport/peer_links.h"
#include "transport/shape_clock.h"
#include "transport/shape_meter.h"
#include "transport/wire.h"

namespace ranklab::transport {

// Messages of one peer are delivered in the order they came. A lost peer is reported after what it
// sent has been delivered, at most kLossWaits after the loss; what is not here by then is lost too.
class Arrivals final : public WireSink {
 public:
  static constexpr Nanos kLossWaits = std::chrono::seconds(1);

  // `port` carries the alpha that the senders' ports add: a message reaches the receiver's port
  // that long after it departs. On an unlimited port without alpha (a native network) a message
  // that no link delays passes at once, whatever the clocks say, and is not metered.
  Arrivals(ShapeClock& clock, const fabric::LinkSpec& port, std::uint64_t seed);

  void DeliverTo(WireSink& sink) { sink_ = &sink; }

  // Errors: the sink's; InvalidArgument, stamps that no shaped wire writes.
  absl::StatusOr<Acceptance> Accept(Endpoint from, const MessageHeader& header) override;
  void Arrived(Endpoint from, const MessageHeader& header, std::uint64_t token) override;
  void Lost(Endpoint peer, absl::Status why) override;

  // Nothing is delivered from now on; cancels all timers.
  void Stop();

  // Between the network and the port, for peers that do not shape their own side of a link.
  PeerLinks& links() { return links_; }

  ShapeReport Report() const { return meter_.Report(); }

 private:
  struct Inbound {
    MessageHeader header;
    std::uint64_t token = 0;  // the sink's
    bool modelled = true;     // false: passes at once
    bool admitted = false;
    bool complete = false;
    Nanos begins{};
    Nanos arrives{};
    Nanos completed{};
  };
  struct Peer {
    std::deque<Inbound> inbound;
    std::uint64_t first = 0;  // number of inbound.front(); numbers are the tokens of the inner wire
    Nanos last_arrives{};
    TimerId timer = TimerId::kNone;  // when the front arrives
    std::optional<absl::Status> lost;
    TimerId loss_timer = TimerId::kNone;
  };
  using Turn = std::tuple<Nanos, Endpoint, std::uint64_t>;  // departs, from, number

  Nanos Reaches(Nanos departs) const;
  bool PassesAtOnce(Endpoint from, const MessageHeader& header);
  fabric::Passage Cross(Endpoint from, const MessageHeader& header);
  void ArmAdmission();
  void AdmitDue();
  void Admit(Endpoint from, Inbound& inbound);
  void DeliverDue(Endpoint from);
  void DeliverOne(Endpoint from, const Inbound& inbound);
  void DropFrom(Endpoint from, std::size_t kept);  // the first `kept` stay
  void ReportLoss(Endpoint from);

  ShapeClock& clock_;
  WireSink* sink_ = nullptr;
  Nanos alpha_;
  bool unlimited_;
  fabric::LinkModel port_;
  PeerLinks links_;
  ShapeMeter meter_;
  std::map<Endpoint, Peer> peers_;
  std::map<Turn, Inbound*> waiting_;  // for admission; points into the peers' queues
  TimerId admission_timer_ = TimerId::kNone;
  Nanos admission_at_{};
  bool stopped_ = false;
};

}  // namespace ranklab::transport
