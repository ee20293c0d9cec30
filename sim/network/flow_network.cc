#include <algorithm>
#include <chrono>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "core/check.h"
#include "fabric/fair_share.h"
#include "sim/network/network_model.h"

namespace ranklab::sim {
namespace {

using fabric::FairShare;

// Rates of the links' specs; one that does not limit gets more than any real one.
std::vector<double> Capacities(const fabric::Topology& topology, std::int64_t links) {
  constexpr double kUnlimited = 1e18;
  std::vector<double> capacities;
  for (fabric::LinkId id = 0; id < links; ++id) {
    capacities.push_back(std::min(topology.link(id).bandwidth.bytes_per_second, kUnlimited));
  }
  return capacities;
}

class FlowNetwork final : public NetworkModel {
 public:
  FlowNetwork(const fabric::Topology& topology, std::int64_t links)
      : topology_(topology),
        shares_(Capacities(topology, links)),
        bytes_(static_cast<std::size_t>(links)) {}

  void Begin(Message message, Rank from, Rank to, double size, std::uint64_t flow,
             double now) override {
    RANKLAB_CHECK(from != to && size >= 0);
    Transfer transfer{.left = size};
    topology_.Route(from, to, flow, transfer.route);
    double latency = 0;
    for (const fabric::LinkId id : transfer.route) {
      bytes_[static_cast<std::size_t>(id)] += size;
      latency += std::chrono::duration<double>(topology_.link(id).alpha).count();
    }
    transfers_.emplace(message, std::move(transfer));
    Add(now + latency, message, 0);
  }

  std::optional<double> NextInstant() const override {
    return events_.empty() ? std::nullopt : std::optional(events_.top().when);
  }

  void AdvanceTo(double when, std::vector<Message>& arrived) override {
    for (; !events_.empty() && events_.top().when <= when; Prune()) {
      const Event event = events_.top();
      events_.pop();
      Transfer& transfer = transfers_.at(event.message);
      if (!transfer.flow && transfer.left > 0) {
        Enter(event.message, transfer, when);
      } else {
        arrived.push_back(event.message);
        Leave(event.message, transfer, when);
      }
    }
  }

  const std::vector<double>& bytes_of_links() const override { return bytes_; }

 private:
  struct Transfer {
    double left = 0;  // bytes, as of `since`
    double since = 0;
    double rate = 0;
    std::int64_t version = 0;  // of the forecast in `events_` that counts
    std::optional<FairShare::Flow> flow{};
    std::vector<fabric::LinkId> route{};
  };
  struct Event {
    double when = 0;
    std::int64_t order = 0;
    Message message = 0;
    std::int64_t version = 0;
    friend bool operator<(const Event& a, const Event& b) {  // the top of a queue is the last
      return std::tie(a.when, a.order) > std::tie(b.when, b.order);
    }
  };

  void Add(double when, Message message, std::int64_t version) {
    events_.push({when, next_order_++, message, version});
  }

  void Enter(Message message, Transfer& transfer, double now) {
    transfer.flow = shares_.Add(transfer.route);
    transfer.since = now;
    if (static_cast<std::size_t>(*transfer.flow) >= message_of_.size()) {
      message_of_.resize(static_cast<std::size_t>(*transfer.flow) + 1);
    }
    message_of_[static_cast<std::size_t>(*transfer.flow)] = message;
    Forecast(now);
  }

  void Leave(Message message, const Transfer& transfer, double now) {
    const std::optional<FairShare::Flow> flow = transfer.flow;
    transfers_.erase(message);
    if (flow) {
      shares_.Remove(*flow);
      Forecast(now);
    }
  }

  // When the flows whose rates have changed will be through.
  void Forecast(double now) {
    for (const FairShare::Flow flow : shares_.touched()) {
      const Message message = message_of_[static_cast<std::size_t>(flow)];
      Transfer& transfer = transfers_.at(message);
      transfer.left = std::max(transfer.left - transfer.rate * (now - transfer.since), 0.0);
      transfer.since = now;
      transfer.rate = shares_.rate(flow);
      Add(now + transfer.left / transfer.rate, message, ++transfer.version);
    }
  }

  // The next event is one that still holds.
  void Prune() {
    while (!events_.empty()) {
      const auto transfer = transfers_.find(events_.top().message);
      if (transfer != transfers_.end() && transfer->second.version == events_.top().version) {
        return;
      }
      events_.pop();
    }
  }

  const fabric::Topology& topology_;
  FairShare shares_;
  std::vector<double> bytes_;
  absl::flat_hash_map<Message, Transfer> transfers_;
  std::vector<Message> message_of_;  // [flow]
  std::priority_queue<Event> events_;
  std::int64_t next_order_ = 0;
};

}  // namespace

std::unique_ptr<NetworkModel> MakeFlowNetwork(const fabric::Topology& topology,
                                              std::int64_t links) {
  return std::make_unique<FlowNetwork>(topology, links);
}

}  // namespace ranklab::sim
