#include "fabric/topology/graph.h"

#include <deque>
#include <utility>

#include "core/check.h"
#include "core/random.h"
#include "core/status.h"

namespace ranklab::fabric {

GraphTopology::Node GraphTopology::AddNode(std::string label, Rank rank) {
  RANKLAB_CHECK(distance_.empty(), "not finished yet");
  const Node node = nodes();
  labels_.push_back(std::move(label));
  rank_of_.push_back(rank);
  leaving_.emplace_back();
  return node;
}

GraphTopology::Node GraphTopology::AddRank(std::string label) {
  const Node node = AddNode(std::move(label), world_size());
  rank_nodes_.push_back(node);
  return node;
}

GraphTopology::Node GraphTopology::AddSwitch(std::string label) {
  return AddNode(std::move(label), -1);
}

void GraphTopology::AddLink(Node from, Node to, const LinkSpec& spec) {
  leaving_[static_cast<std::size_t>(from)].push_back(static_cast<LinkId>(links_.size()));
  links_.push_back({from, to, spec});
}

void GraphTopology::Join(Node a, Node b, const LinkSpec& spec) {
  AddLink(a, b, spec);
  AddLink(b, a, spec);
}

absl::Status GraphTopology::Finish() {
  if (rank_nodes_.empty()) {
    return InvalidArgument("%s: a topology without ranks", name_);
  }
  std::vector<std::vector<Node>> entering(labels_.size());
  for (const Link& link : links_) {
    entering[static_cast<std::size_t>(link.to)].push_back(link.from);
  }
  // From each rank backwards. Ranks forward too: a ring's do.
  for (const Node goal : rank_nodes_) {
    std::vector<std::int32_t>& distance = distance_.emplace_back(labels_.size(), -1);
    std::deque<Node> next = {goal};
    distance[static_cast<std::size_t>(goal)] = 0;
    while (!next.empty()) {
      const Node node = next.front();
      next.pop_front();
      for (const Node before : entering[static_cast<std::size_t>(node)]) {
        if (distance[static_cast<std::size_t>(before)] < 0) {
          distance[static_cast<std::size_t>(before)] = distance[static_cast<std::size_t>(node)] + 1;
          next.push_back(before);
        }
      }
    }
    for (const Node from : rank_nodes_) {
      if (distance[static_cast<std::size_t>(from)] < 0) {
        return InvalidArgument("%s: no path from %s to %s", name_, label(from), label(goal));
      }
    }
  }
  return absl::OkStatus();
}

void GraphTopology::Route(Rank from, Rank to, std::uint64_t flow,
                          std::vector<LinkId>& route) const {
  RANKLAB_CHECK(!distance_.empty(), "Finish was called");
  const std::vector<std::int32_t>& distance = distance_[static_cast<std::size_t>(to)];
  Random random(flow * 0x9E3779B97F4A7C15 + static_cast<std::uint64_t>(from) * 1'000'003 +
                static_cast<std::uint64_t>(to));
  std::vector<LinkId> equal;
  for (Node node = NodeOf(from); node != NodeOf(to);) {
    equal.clear();
    for (const LinkId id : leaving_[static_cast<std::size_t>(node)]) {
      const Node next = links_[static_cast<std::size_t>(id)].to;
      if (distance[static_cast<std::size_t>(next)] + 1 ==
          distance[static_cast<std::size_t>(node)]) {
        equal.push_back(id);
      }
    }
    route.push_back(equal[equal.size() == 1 ? 0 : random.Below(equal.size())]);
    node = links_[static_cast<std::size_t>(route.back())].to;
  }
}

}  // namespace ranklab::fabric
