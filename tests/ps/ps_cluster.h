// Workers' clients and parameter servers on one virtual loop, over a network that the test chooses.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/check.h"
#include "core/status.h"
#include "ps/client.h"
#include "ps/replicator.h"
#include "ps/server.h"
#include "tests/ps/shard_bench.h"
#include "transport/local_wire.h"
#include "transport/messenger.h"

namespace ranklab::ps {

class TestNetwork {
 public:
  virtual ~TestNetwork() = default;
  virtual transport::Requester& RequesterOf(Endpoint endpoint) = 0;
  virtual transport::Responder& ResponderOf(Rank server) = 0;
};

// The product's messengers over wires that take no time.
class MessengerNetwork final : public TestNetwork {
 public:
  explicit MessengerNetwork(EventLoop& loop) : loop_(loop), network_(loop) {}

  transport::Requester& RequesterOf(Endpoint endpoint) override { return At(endpoint); }
  transport::Responder& ResponderOf(Rank server) override { return At({Role::kServer, server}); }

 private:
  struct End {
    std::unique_ptr<transport::Wire> wire;
    std::unique_ptr<transport::Messenger> messenger;
  };

  transport::Messenger& At(Endpoint endpoint) {
    End& end = ends_[endpoint];
    if (end.messenger == nullptr) {
      end.wire = network_.Connect(endpoint);
      end.messenger =
          std::make_unique<transport::Messenger>(loop_, *end.wire, transport::MessengerOptions{});
    }
    return *end.messenger;
  }

  EventLoop& loop_;
  transport::LocalNetwork network_;
  std::map<Endpoint, End> ends_;
};

struct ClusterOptions {
  int workers = 1;
  int servers = 1;
  std::int64_t elements = 0;
  StalenessBound bound{};
  Order order = Order::kArrival;
  std::int64_t block_elements = 1 << 18;
  Bytes message = 1 << 20;
  compute::DType wire = compute::DType::kFloat32;
  std::vector<float> initial{};  // none: zeros
  bool replicated = false;       // each shard on the next server too
};

class PsCluster {
 public:
  PsCluster(EventLoop& loop, TestNetwork& network, const ClusterOptions& options,
            const OptimizerFactory& make_optimizer)
      : options_(options), ranges_(CutEvenly(options.elements, options.servers)) {
    for (Rank server = 0; server < options.servers; ++server) {
      shards_.push_back(MakeShard(loop, server, make_optimizer, /*standby=*/false));
      servers_.push_back(std::make_unique<Server>(loop, network.ResponderOf(server),
                                                  **shards_.back(), options.workers));
    }
    for (Rank server = 0; options.replicated && server < options.servers; ++server) {
      const Rank heir = HeirOf(server);
      standbys_.push_back(MakeShard(loop, server, make_optimizer, /*standby=*/true));
      servers_[static_cast<std::size_t>(heir)]->HoldReplica(**standbys_.back(), server);
      replicators_.push_back(std::make_unique<Replicator>(
          network.RequesterOf({Role::kServer, server}),
          ReplicatorOptions{.heir = {Role::kServer, heir},
                            .range = ranges_[static_cast<std::size_t>(server)],
                            .message = options.message}));
      shard(server).ReplicateWith(
          [replicator = replicators_.back().get()](
              const ReplicatedUpdate& update, const compute::TensorView& gradients, DoneFn done) {
            replicator->Replicate(update, gradients, std::move(done));
          });
    }
    for (Rank worker = 0; worker < options.workers; ++worker) {
      clients_.push_back(std::make_unique<Client>(network.RequesterOf({Role::kWorker, worker}),
                                                  ClientOptions{.worker = worker,
                                                                .ranges = ranges_,
                                                                .message = options.message,
                                                                .wire = options.wire,
                                                                .survives = options.replicated}));
    }
  }

  Client& client(Rank worker) { return *clients_.at(static_cast<std::size_t>(worker)); }
  Shard& shard(Rank server) { return **shards_.at(static_cast<std::size_t>(server)); }
  Shard& standby_of(Rank server) { return **standbys_.at(static_cast<std::size_t>(server)); }
  Server& server(Rank server) { return *servers_.at(static_cast<std::size_t>(server)); }
  std::vector<ServerReport> Reports() const {
    std::vector<ServerReport> reports;
    for (const auto& server : servers_) {
      reports.push_back(server->Report());
    }
    return reports;
  }
  // The model as the servers hold it.
  std::vector<float> Parameters() {
    std::vector<float> parameters;
    for (Rank server = 0; server < options_.servers; ++server) {
      const auto at = static_cast<std::size_t>(server);
      HostedShard& shard = server == lost_ ? *standbys_[at] : *shards_[at];
      parameters.insert(parameters.end(), shard.parameters(),
                        shard.parameters() + ranges_[at].size());
    }
    return parameters;
  }
  void Remove(Rank worker) {
    for (Rank server = 0; server < options_.servers; ++server) {
      this->server(server).Remove(worker);
    }
  }

  Rank HeirOf(Rank server) const { return (server + 1) % options_.servers; }
  // What the coordinator tells, each at its own time: the heir, the one whose replica was on the
  // lost server, and a worker. Requires: replicated.
  void TellHeir(Rank lost) {
    lost_ = lost;
    const absl::Status taken = server(HeirOf(lost)).TakeOver();
    RANKLAB_CHECK(taken.ok(), "%s", MessageOf(taken));
  }
  void TellPredecessor(Rank lost) {
    replicators_.at(static_cast<std::size_t>((lost + options_.servers - 1) % options_.servers))
        ->Stop();
  }
  void TellWorker(Rank worker, Rank lost) { client(worker).Replace(lost, HeirOf(lost)); }

 private:
  std::unique_ptr<HostedShard> MakeShard(EventLoop& loop, Rank server,
                                         const OptimizerFactory& make_optimizer, bool standby) {
    const KeyRange range = ranges_[static_cast<std::size_t>(server)];
    std::vector<float> initial;
    if (!options_.initial.empty()) {
      initial.assign(options_.initial.begin() + range.begin, options_.initial.begin() + range.end);
    }
    return std::make_unique<HostedShard>(loop,
                                         ShardOptions{.range = range,
                                                      .worker_count = options_.workers,
                                                      .bound = options_.bound,
                                                      .order = options_.order,
                                                      .wire = options_.wire,
                                                      .block_elements = options_.block_elements,
                                                      .standby = standby},
                                         make_optimizer, initial);
  }

  const ClusterOptions options_;
  const std::vector<KeyRange> ranges_;
  Rank lost_ = -1;
  std::vector<std::unique_ptr<HostedShard>> shards_;
  std::vector<std::unique_ptr<HostedShard>> standbys_;  // [of server]
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::unique_ptr<Replicator>> replicators_;  // [server]
  std::vector<std::unique_ptr<Client>> clients_;
};

}  // namespace ranklab::ps
