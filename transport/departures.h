// The sender's side of a shaped wire: queues messages on the modelled port and lets them go when
// their first byte would leave.
#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include <absl/status/status.h>

#include "core/endpoint.h"
#include "fabric/link_model.h"
#include "transport/peer_links.h"
#include "transport/shape_clock.h"
#include "transport/wire.h"

namespace ranklab::transport {

class Departures {
 public:
  Departures(ShapeClock& clock, Wire& inner, const fabric::LinkSpec& port, std::uint64_t seed);

  // As Wire::Send; `sent` runs when the last byte has left the modelled port and the inner wire no
  // longer touches the body. Messages to one peer leave in the order sent.
  void Send(Endpoint to, MessageHeader header, Payload body, DoneFn sent);

  // Ends what is held, and every later send, with `reason`; cancels all timers.
  void Stop(absl::Status reason);

  // Between the port and the network.
  PeerLinks& links() { return links_; }

 private:
  struct Held {
    Nanos starts{};
    Nanos leaves{};
    MessageHeader header;
    Payload body;
    DoneFn sent;
  };
  struct Peer {
    std::deque<Held> held;  // in order of `starts`
    TimerId timer = TimerId::kNone;
  };
  struct Leaving {
    TimerId timer = TimerId::kNone;
    DoneFn sent;
  };

  void Release(Endpoint to);
  void HandOver(Endpoint to, Held held);
  void HandedOver(absl::Status status, Nanos leaves, DoneFn sent);
  void FinishLeaving(std::uint64_t number, Nanos leaves);
  void EndLater(DoneFn sent);

  ShapeClock& clock_;
  Wire& inner_;
  fabric::LinkModel port_;
  PeerLinks links_;
  std::map<Endpoint, Peer> peers_;
  std::uint64_t next_leaving_ = 1;
  std::map<std::uint64_t, Leaving> leaving_;  // handed over, their last byte not yet out
  absl::Status stopped_;
};

}  // namespace ranklab::transport
