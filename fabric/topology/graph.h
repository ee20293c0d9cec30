// A topology as a graph: ranks, switches and whatever else stands between them, and directed links.
// Routes are shortest paths by links; among equal ones a flow's hash picks (ECMP), the same flow
// always the same path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>

#include "fabric/topology.h"

namespace ranklab::fabric {

// A table of distances has ranks x nodes entries.
inline constexpr int kGraphNodeLimit = 1 << 13;
inline constexpr std::int64_t kGraphLinkLimit = std::int64_t{1} << 22;

class GraphTopology final : public Topology {
 public:
  using Node = std::int32_t;

  struct Link {
    Node from = 0;
    Node to = 0;
    LinkSpec spec;
  };

  explicit GraphTopology(std::string name) : name_(std::move(name)) {}

  // Ranks first, then the others; a node's label is for people: "gpu0", "leaf3".
  Node AddRank(std::string label);
  Node AddSwitch(std::string label);
  // In both directions, with these properties each. Several between one pair are allowed.
  void Join(Node a, Node b, const LinkSpec& spec);
  void AddLink(Node from, Node to, const LinkSpec& spec);

  // Computes routes. Call once, before Route. Errors: InvalidArgument, no ranks, a rank that
  // another cannot reach, with both labels.
  absl::Status Finish();

  std::string_view name() const override { return name_; }
  int world_size() const override { return static_cast<int>(rank_nodes_.size()); }
  const LinkSpec& link(LinkId id) const override {
    return links_[static_cast<std::size_t>(id)].spec;
  }
  void Route(Rank from, Rank to, std::uint64_t flow, std::vector<LinkId>& route) const override;
  RankClass ClassOf(Rank rank) const override { return rank; }  // none is known to be alike

  int nodes() const { return static_cast<int>(labels_.size()); }
  const std::vector<Link>& links() const { return links_; }
  const std::string& label(Node node) const { return labels_[static_cast<std::size_t>(node)]; }
  Node NodeOf(Rank rank) const { return rank_nodes_[static_cast<std::size_t>(rank)]; }
  bool IsRank(Node node) const { return rank_of_[static_cast<std::size_t>(node)] >= 0; }

 private:
  Node AddNode(std::string label, Rank rank);

  std::string name_;
  std::vector<std::string> labels_;
  std::vector<Rank> rank_of_;  // [node]; -1: no rank
  std::vector<Node> rank_nodes_;
  std::vector<Link> links_;
  std::vector<std::vector<LinkId>> leaving_;  // [node]
  // [rank][node]: links from the node to that rank.
  std::vector<std::vector<std::int32_t>> distance_;
};

}  // namespace ranklab::fabric
