// Workers' clients and parameter servers on one virtual loop, over a network that the test chooses.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "ps/client.h"
#include "ps/server.h"
#include "tests/ps/shard_bench.h"
#include "transport/local_wire.h"
#include "transport/messenger.h"

namespace ranklab::ps {

class TestNetwork {
 public:
  virtual ~TestNetwork() = default;
  virtual transport::Requester& RequesterOf(Rank worker) = 0;
  virtual transport::Responder& ResponderOf(Rank server) = 0;
};

// The product's messengers over wires that take no time.
class MessengerNetwork final : public TestNetwork {
 public:
  explicit MessengerNetwork(EventLoop& loop) : loop_(loop), network_(loop) {}

  transport::Requester& RequesterOf(Rank worker) override { return At({Role::kWorker, worker}); }
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
};

class PsCluster {
 public:
  PsCluster(EventLoop& loop, TestNetwork& network, const ClusterOptions& options,
            const OptimizerFactory& make_optimizer) {
    const std::vector<KeyRange> ranges = CutEvenly(options.elements, options.servers);
    for (Rank server = 0; server < options.servers; ++server) {
      const KeyRange range = ranges[static_cast<std::size_t>(server)];
      std::vector<float> initial;
      if (!options.initial.empty()) {
        initial.assign(options.initial.begin() + range.begin, options.initial.begin() + range.end);
      }
      shards_.push_back(
          std::make_unique<HostedShard>(loop,
                                        ShardOptions{.range = range,
                                                     .worker_count = options.workers,
                                                     .bound = options.bound,
                                                     .order = options.order,
                                                     .wire = options.wire,
                                                     .block_elements = options.block_elements},
                                        make_optimizer, initial));
      servers_.push_back(std::make_unique<Server>(loop, network.ResponderOf(server),
                                                  **shards_.back(), options.workers));
    }
    for (Rank worker = 0; worker < options.workers; ++worker) {
      clients_.push_back(std::make_unique<Client>(network.RequesterOf(worker),
                                                  ClientOptions{.worker = worker,
                                                                .ranges = ranges,
                                                                .message = options.message,
                                                                .wire = options.wire}));
    }
  }

  Client& client(Rank worker) { return *clients_.at(static_cast<std::size_t>(worker)); }
  Shard& shard(Rank server) { return **shards_.at(static_cast<std::size_t>(server)); }
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
    for (const auto& shard : shards_) {
      parameters.insert(parameters.end(), shard->parameters(),
                        shard->parameters() + (**shard).options().range.size());
    }
    return parameters;
  }
  void Remove(Rank worker) {
    for (const auto& shard : shards_) {
      (*shard)->Remove(worker);
    }
  }

 private:
  std::vector<std::unique_ptr<HostedShard>> shards_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::unique_ptr<Client>> clients_;
};

}  // namespace ranklab::ps
