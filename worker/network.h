// One generation's network of one endpoint: a wire to the peers it talks to, shaped like the lab's
// fabric, and the messenger on top. Made when a generation forms, gone when it ends.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/event_loop.h"
#include "core/status_latch.h"
#include "experiment/lab_spec.h"
#include "fabric/link_model.h"
#include "transport/messenger.h"
#include "transport/shaped_wire.h"
#include "transport/wire.h"

namespace ranklab::worker {

// A process's listening ports; they live as long as it does.
struct NetworkPorts {
  transport::WirePort& tcp;
  transport::WirePort& grpc;
};

struct MemberAddress {
  std::string host;
  int grpc_port = 0;
  int tcp_port = 0;
};

struct NetworkOptions {
  Endpoint self;
  std::uint32_t generation = 0;
  std::uint64_t secret = 0;
  std::vector<MemberAddress> workers;  // [rank]
  std::vector<MemberAddress> servers;  // [rank]
  fabric::LinkSpec port;               // dilated; unlimited for a native fabric
  double time_scale = 1.0;
  std::uint64_t seed = 0;
  Nanos clock_offset{};
  Nanos deadline{};  // for the connections, on the loop's clock
};

class Network {
 public:
  // Blocks the calling thread (not the loop) until all connections stand.
  // Errors: DeadlineExceeded, naming the peers that are missing; Aborted, `aborted` was set.
  static absl::StatusOr<std::unique_ptr<Network>> Open(EventLoop& loop, const NetworkPorts& ports,
                                                       const experiment::LabSpec& spec,
                                                       const NetworkOptions& options);

  // Not from the loop: aborts what is still open, waits for the loop to let go of it.
  ~Network();

  transport::Messenger& messenger() { return *messenger_; }  // on the loop
  const std::vector<Endpoint>& peers() const { return peers_; }
  const std::string& transport() const { return transport_; }

  // From any thread: ends every operation with `reason`.
  void Abort(const absl::Status& reason);

  // Not from the loop. Bodies only, sums over peers.
  struct Traffic {
    Bytes sent = 0;
    Bytes received = 0;
  };
  Traffic TrafficSoFar();
  struct Report {
    std::vector<std::pair<Endpoint, transport::WireCounters>> connections;
    transport::ShapeReport shape;
  };
  Report Describe();

  // Reshapes the ways between here and its peer that the injection means and that this endpoint
  // shapes (experiment::ShapeLink); latency, jitter and time-outs are modelled.
  void ShapeLink(const experiment::ShapeLink& link);
  void ResetLinks();

 private:
  Network(EventLoop& loop, const NetworkOptions& options, std::string transport);

  EventLoop& loop_;
  const NetworkOptions options_;
  const std::string transport_;
  std::vector<Endpoint> peers_;
  std::unique_ptr<transport::ShapedWire> wire_;  // on the loop
  std::unique_ptr<transport::Messenger> messenger_;
};

}  // namespace ranklab::worker
