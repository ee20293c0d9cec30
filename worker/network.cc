#include "worker/network.h"

#include <limits>
#include <utility>

#include "core/run_on_loop.h"
#include "core/status.h"
#include "experiment/survival.h"
#include "fabric/presets.h"

namespace ranklab::worker {
namespace {

std::string AddressOf(const MemberAddress& member, const std::string& transport) {
  return absl::StrFormat("%s:%d", member.host,
                         transport == "grpc" ? member.grpc_port : member.tcp_port);
}

bool UsesServers(const experiment::LabSpec& spec) {
  return std::holds_alternative<experiment::ParameterServerSpec>(spec.exchange.kind);
}

// Workers of a collective talk among themselves, those of a parameter server with the servers,
// which talk among themselves only where they have replicas.
std::vector<transport::WirePeer> PeersOf(const experiment::LabSpec& spec,
                                         const NetworkOptions& options,
                                         const std::string& transport) {
  std::vector<transport::WirePeer> peers;
  if (std::holds_alternative<experiment::NoExchange>(spec.exchange.kind)) {
    return peers;
  }
  const auto add = [&](Role role, const std::vector<MemberAddress>& members) {
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      const Endpoint endpoint{role, static_cast<Rank>(rank)};
      if (endpoint != options.self) {
        peers.push_back({endpoint, AddressOf(members[rank], transport)});
      }
    }
  };
  if (!UsesServers(spec) || options.self.role == Role::kServer) {
    add(Role::kWorker, options.workers);
  }
  if (UsesServers(spec) && (options.self.role == Role::kWorker || experiment::Replicates(spec))) {
    add(Role::kServer, options.servers);
  }
  return peers;
}

}  // namespace

Network::Network(EventLoop& loop, const NetworkOptions& options, std::string transport)
    : loop_(loop), options_(options), transport_(std::move(transport)) {}

absl::StatusOr<std::unique_ptr<Network>> Network::Open(EventLoop& loop, const NetworkPorts& ports,
                                                       const experiment::LabSpec& spec,
                                                       const NetworkOptions& options) {
  const std::string transport = spec.Transport();
  auto network = std::unique_ptr<Network>(new Network(loop, options, transport));
  transport::WireOptions wire_options{.self = options.self,
                                      .generation = options.generation,
                                      .secret = options.secret,
                                      .peers = PeersOf(spec, options, transport),
                                      .deadline = options.deadline,
                                      .shared_memory = transport == "shm"};
  for (const transport::WirePeer& peer : wire_options.peers) {
    network->peers_.push_back(peer.endpoint);
  }
  transport::WirePort& port = transport == "grpc" ? ports.grpc : ports.tcp;
  const auto ready = std::make_shared<StatusLatch>();
  Network* raw = network.get();
  RunOnLoop(loop, [&loop, &port, &wire_options, &options, raw, ready] {
    auto wire = port.Open(wire_options, [ready](absl::Status status) { ready->Set(status); });
    raw->wire_ = std::make_unique<transport::ShapedWire>(
        loop, std::move(wire),
        transport::ShapeOptions{
            .port = options.port, .seed = options.seed, .clock_offset = options.clock_offset});
    raw->messenger_ = std::make_unique<transport::Messenger>(
        loop, *raw->wire_, transport::MessengerOptions{.generation = options.generation});
  });
  // The wire keeps the deadline and names the missing; this wait is behind it.
  RETURN_IF_ERROR(ready->Wait(options.deadline - loop.Now() + std::chrono::seconds(5),
                              "the wires of the generation"));
  return network;
}

Network::~Network() {
  RunOnLoop(loop_, [this] {
    if (messenger_ != nullptr) {
      messenger_->Abort(Aborted("the generation is over"));
    }
  });
  // A later task, so that what Abort has posted runs first.
  RunOnLoop(loop_, [this] {
    messenger_.reset();
    wire_.reset();
  });
}

void Network::Abort(const absl::Status& reason) {
  loop_.Post([this, reason] { messenger_->Abort(reason); });
}

Network::Traffic Network::TrafficSoFar() {
  Traffic traffic;
  RunOnLoop(loop_, [&] {
    for (const Endpoint peer : peers_) {
      const transport::WireCounters counters = wire_->counters(peer);
      traffic.sent += counters.body_sent;
      traffic.received += counters.body_received;
    }
  });
  return traffic;
}

Network::Report Network::Describe() {
  Report report;
  RunOnLoop(loop_, [&] {
    for (const Endpoint peer : peers_) {
      report.connections.emplace_back(peer, wire_->counters(peer));
    }
    report.shape = wire_->Report();
  });
  return report;
}

void Network::ShapeLink(const experiment::ShapeLink& link) {
  const fabric::LinkSpec spec = fabric::Dilate(link.spec, options_.time_scale);
  RunOnLoop(loop_, [&] {
    if (const auto peer = link.WayTo(options_.self)) {
      wire_->ShapeLink(*peer, spec);
    }
    if (const auto server = link.WayFrom(options_.self)) {
      wire_->ShapeLinkFrom(*server, spec);
    }
  });
}

void Network::ResetLinks() {
  RunOnLoop(loop_, [&] { wire_->ResetLinks(); });
}

}  // namespace ranklab::worker
