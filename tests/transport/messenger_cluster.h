// Messengers on one virtual loop, for tests.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <absl/status/status.h>

#include "core/endpoint.h"
#include "sim/virtual_loop.h"
#include "tests/transport/bytes.h"
#include "transport/local_wire.h"
#include "transport/messenger.h"

namespace ranklab::transport {

// How an operation ended: nothing until then. Fails the test if it ends twice.
struct Outcome {
  std::optional<absl::Status> status;
  int runs = 0;

  DoneFn Done() {
    return [this](absl::Status result) {
      status = std::move(result);
      ++runs;
    };
  }
  bool pending() const { return runs == 0; }
  bool ok() const { return runs == 1 && status->ok(); }
};

// One wire and messenger for each endpoint that is asked for.
class MessengerCluster {
 public:
  explicit MessengerCluster(const MessengerOptions& options = {}) : options_(options) {}

  Messenger& At(Endpoint endpoint) { return At(endpoint, options_); }
  Messenger& At(Endpoint endpoint, const MessengerOptions& options) {
    Node& node = nodes_[endpoint];
    if (node.messenger == nullptr) {
      node.wire = network_.Connect(endpoint);
      node.messenger = std::make_unique<Messenger>(loop_, *node.wire, options);
    }
    return *node.messenger;
  }

  void Kill(Endpoint endpoint) { network_.Disconnect(endpoint); }
  void Destroy(Endpoint endpoint) { nodes_.erase(endpoint); }
  void Run() { loop_.Run(); }
  sim::VirtualLoop& loop() { return loop_; }
  Wire& wire(Endpoint endpoint) { return *nodes_.at(endpoint).wire; }

 private:
  struct Node {
    std::unique_ptr<Wire> wire;
    std::unique_ptr<Messenger> messenger;
  };
  MessengerOptions options_;
  sim::VirtualLoop loop_;
  LocalNetwork network_{loop_};
  std::map<Endpoint, Node> nodes_;
};

}  // namespace ranklab::transport
