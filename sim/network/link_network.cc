#include <algorithm>
#include <chrono>
#include <cmath>
#include <queue>
#include <tuple>

#include "core/check.h"
#include "fabric/link_model.h"
#include "sim/network/network_model.h"

namespace ranklab::sim {
namespace {

Nanos ToNanos(double seconds) { return Nanos(std::llround(seconds * 1e9)); }
double ToSeconds(Nanos time) { return std::chrono::duration<double>(time).count(); }

class LinkNetwork final : public NetworkModel {
 public:
  LinkNetwork(const fabric::Topology& topology, std::int64_t links)
      : topology_(topology), bytes_(static_cast<std::size_t>(links)) {
    for (fabric::LinkId id = 0; id < links; ++id) {
      links_.emplace_back(topology.link(id), static_cast<std::uint64_t>(id));
    }
  }

  void Begin(Message message, Rank from, Rank to, double size, std::uint64_t flow,
             double now) override {
    RANKLAB_CHECK(from != to && size >= 0);
    route_.clear();
    topology_.Route(from, to, flow, route_);
    path_.clear();
    for (const fabric::LinkId id : route_) {
      bytes_[static_cast<std::size_t>(id)] += size;
      path_.push_back(&links_[static_cast<std::size_t>(id)]);
    }
    const auto bytes = static_cast<Bytes>(std::ceil(size));
    const fabric::LinkId last = route_.back();
    path_.pop_back();
    const fabric::Passage passage = fabric::Path::Depart(ToNanos(now), bytes, path_);
    Nanos latency{};
    for (const fabric::LinkModel* link : path_) {
      latency += link->spec().alpha;
    }
    Add({.when = passage.starts + latency,
         .message = message,
         .last = last,
         .bytes = bytes,
         .floor = passage.arrives + topology_.link(last).alpha});
  }

  std::optional<double> NextInstant() const override {
    return events_.empty() ? std::nullopt : std::optional(ToSeconds(events_.top().when));
  }

  void AdvanceTo(double when, std::vector<Message>& arrived) override {
    const Nanos now = ToNanos(when);
    while (!events_.empty() && events_.top().when <= now) {
      Event event = events_.top();
      events_.pop();
      if (event.last < 0) {
        arrived.push_back(event.message);
        continue;
      }
      fabric::LinkModel* const link = &links_[static_cast<std::size_t>(event.last)];
      event.when =
          fabric::Path::Arrive(event.when, event.floor, event.bytes, std::span(&link, 1)).arrives;
      event.last = -1;
      Add(event);
    }
  }

  const std::vector<double>& bytes_of_links() const override { return bytes_; }

 private:
  struct Event {
    Nanos when{};
    std::int64_t order = 0;
    Message message = 0;
    fabric::LinkId last = -1;  // reaches this one; -1: arrives
    Bytes bytes = 0;
    Nanos floor{};                                           // it does not arrive before
    friend bool operator<(const Event& a, const Event& b) {  // the top of a queue is the last
      return std::tie(a.when, a.order) > std::tie(b.when, b.order);
    }
  };

  void Add(Event event) {
    event.order = next_order_++;
    events_.push(event);
  }

  const fabric::Topology& topology_;
  std::vector<fabric::LinkModel> links_;
  std::vector<double> bytes_;
  std::priority_queue<Event> events_;
  std::int64_t next_order_ = 0;
  std::vector<fabric::LinkId> route_;
  std::vector<fabric::LinkModel*> path_;
};

}  // namespace

std::unique_ptr<NetworkModel> MakeLinkNetwork(const fabric::Topology& topology,
                                              std::int64_t links) {
  return std::make_unique<LinkNetwork>(topology, links);
}

}  // namespace ranklab::sim
