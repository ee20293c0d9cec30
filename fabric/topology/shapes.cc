#include "fabric/topology/shapes.h"

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <utility>

#include "core/status.h"

namespace ranklab::fabric {
namespace {

using Node = GraphTopology::Node;

// Whether all are at least 1 and the product is a graph that is held.
absl::Status CheckSizes(std::string_view what, const std::vector<int>& sizes,
                        std::int64_t links_a_node) {
  std::int64_t nodes = 1;
  for (const int size : sizes) {
    if (size < 1) {
      return InvalidArgument("%s: a size of %d; at least 1 is meant", what, size);
    }
    nodes *= size;
    if (nodes > kGraphNodeLimit || nodes * links_a_node > kGraphLinkLimit) {
      return InvalidArgument("%s: more than %d nodes or %d links", what, kGraphNodeLimit,
                             kGraphLinkLimit);
    }
  }
  return absl::OkStatus();
}

GraphTopology WithRanks(std::string name, std::int64_t ranks) {
  GraphTopology graph(std::move(name));
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    graph.AddRank(absl::StrFormat("rank%d", rank));
  }
  return graph;
}

absl::StatusOr<GraphTopology> Finished(GraphTopology graph) {
  RETURN_IF_ERROR(graph.Finish());
  return graph;
}

// Ranks [first, first + count) on a new switch.
Node AddSwitchOver(GraphTopology& graph, std::string label, int first, int count,
                   const LinkSpec& link) {
  const Node node = graph.AddSwitch(std::move(label));
  for (int i = 0; i < count; ++i) {
    graph.Join(graph.NodeOf(first + i), node, link);
  }
  return node;
}

}  // namespace

absl::StatusOr<GraphTopology> MakeSwitch(int ranks, const LinkSpec& link) {
  RETURN_IF_ERROR(CheckSizes("switch", {ranks}, 2));
  GraphTopology graph = WithRanks("switch", ranks);
  AddSwitchOver(graph, "switch", 0, ranks, link);
  return Finished(std::move(graph));
}

absl::StatusOr<GraphTopology> MakeRing(int ranks, const LinkSpec& link) {
  return MakeTorus({ranks}, link);
}

absl::StatusOr<GraphTopology> MakeFullMesh(int ranks, const LinkSpec& link) {
  RETURN_IF_ERROR(CheckSizes("full mesh", {ranks}, ranks));
  GraphTopology graph = WithRanks("full mesh", ranks);
  for (Node a = 0; a < ranks; ++a) {
    for (Node b = a + 1; b < ranks; ++b) {
      graph.Join(a, b, link);
    }
  }
  return Finished(std::move(graph));
}

absl::StatusOr<GraphTopology> MakeTorus(const std::vector<int>& dims, const LinkSpec& link) {
  RETURN_IF_ERROR(CheckSizes("torus", dims, 2 * static_cast<std::int64_t>(dims.size())));
  int ranks = 1;
  for (const int dim : dims) {
    ranks *= dim;
  }
  GraphTopology graph = WithRanks(dims.size() == 1 ? "ring" : "torus", ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    int place = 1;
    for (const int dim : dims) {
      const int digit = rank / place % dim;
      const int next = rank + ((digit + 1) % dim - digit) * place;
      // Of two nodes one pair of links is enough.
      if (next != rank && (dim > 2 || digit == 0)) {
        graph.Join(rank, next, link);
      }
      place *= dim;
    }
  }
  return Finished(std::move(graph));
}

absl::StatusOr<GraphTopology> MakeDragonfly(const Dragonfly& shape, const LinkSpec& host,
                                            const LinkSpec& local, const LinkSpec& global) {
  RETURN_IF_ERROR(CheckSizes("dragonfly", {shape.groups, shape.routers, shape.hosts},
                             shape.routers + shape.groups));
  GraphTopology graph = WithRanks("dragonfly", shape.groups * shape.routers * shape.hosts);
  std::vector<Node> routers;
  for (int i = 0; i < shape.groups * shape.routers; ++i) {
    routers.push_back(
        AddSwitchOver(graph, absl::StrFormat("router%d", i), i * shape.hosts, shape.hosts, host));
  }
  const auto router = [&](int group, int number) {
    return routers[static_cast<std::size_t>(group * shape.routers + number % shape.routers)];
  };
  for (int group = 0; group < shape.groups; ++group) {
    for (int a = 0; a < shape.routers; ++a) {
      for (int b = a + 1; b < shape.routers; ++b) {
        graph.Join(router(group, a), router(group, b), local);
      }
    }
    for (int other = group + 1; other < shape.groups; ++other) {
      graph.Join(router(group, other - 1), router(other, group), global);
    }
  }
  return Finished(std::move(graph));
}

absl::StatusOr<GraphTopology> MakeFatTree(const FatTree& shape, const LinkSpec& host,
                                          const LinkSpec& uplink) {
  RETURN_IF_ERROR(CheckSizes("fat tree", {shape.leaves, shape.hosts}, 2));
  RETURN_IF_ERROR(CheckSizes("fat tree", {shape.leaves, shape.spines}, 2));
  GraphTopology graph = WithRanks("fat tree", shape.leaves * shape.hosts);
  std::vector<Node> spines;
  for (int spine = 0; spine < shape.spines; ++spine) {
    spines.push_back(graph.AddSwitch(absl::StrFormat("spine%d", spine)));
  }
  for (int leaf = 0; leaf < shape.leaves; ++leaf) {
    const Node node = AddSwitchOver(graph, absl::StrFormat("leaf%d", leaf), leaf * shape.hosts,
                                    shape.hosts, host);
    for (const Node spine : spines) {
      graph.Join(node, spine, uplink);
    }
  }
  return Finished(std::move(graph));
}

absl::StatusOr<GraphTopology> MakeRails(const Rails& shape, const LinkSpec& inside,
                                        const LinkSpec& rail, const LinkSpec& spine) {
  RETURN_IF_ERROR(CheckSizes("rails", {shape.nodes, shape.gpus}, 4));
  GraphTopology graph = WithRanks("rails", shape.nodes * shape.gpus);
  for (int node = 0; node < shape.nodes; ++node) {
    AddSwitchOver(graph, absl::StrFormat("node%d", node), node * shape.gpus, shape.gpus, inside);
  }
  const Node top = graph.AddSwitch("spine");
  for (int i = 0; i < shape.gpus; ++i) {
    const Node leaf = graph.AddSwitch(absl::StrFormat("rail%d", i));
    for (int node = 0; node < shape.nodes; ++node) {
      graph.Join(graph.NodeOf(node * shape.gpus + i), leaf, rail);
    }
    graph.Join(leaf, top, spine);
  }
  return Finished(std::move(graph));
}

absl::StatusOr<GraphTopology> MakePcieTree(const PcieTree& shape, const LinkSpec& pcie,
                                           const LinkSpec& between_sockets) {
  RETURN_IF_ERROR(
      CheckSizes("PCIe tree", {shape.sockets, shape.switches, shape.gpus}, 2 + shape.sockets));
  GraphTopology graph = WithRanks("PCIe tree", shape.sockets * shape.switches * shape.gpus);
  std::vector<Node> cpus;
  for (int socket = 0; socket < shape.sockets; ++socket) {
    cpus.push_back(graph.AddSwitch(absl::StrFormat("cpu%d", socket)));
    for (int i = 0; i < shape.switches; ++i) {
      const int number = socket * shape.switches + i;
      const Node node = AddSwitchOver(graph, absl::StrFormat("pcie%d", number), number * shape.gpus,
                                      shape.gpus, pcie);
      graph.Join(node, cpus.back(), pcie);
    }
    for (int other = 0; other < socket; ++other) {
      graph.Join(cpus.back(), cpus[static_cast<std::size_t>(other)], between_sockets);
    }
  }
  return Finished(std::move(graph));
}

std::vector<NvLinks> Dgx1vLinks() {
  std::vector<NvLinks> links;
  for (const int half : {0, 4}) {
    for (const NvLinks& pair : std::initializer_list<NvLinks>{
             {0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {1, 2, 2}, {1, 3, 1}, {2, 3, 2}}) {
      links.push_back({half + pair.a, half + pair.b, pair.count});
    }
  }
  for (const NvLinks& pair :
       std::initializer_list<NvLinks>{{0, 4, 2}, {1, 5, 2}, {2, 6, 1}, {3, 7, 1}}) {
    links.push_back(pair);
  }
  return links;
}

absl::StatusOr<GraphTopology> MakeDgx1v(const LinkSpec& link) {
  GraphTopology graph("DGX-1V");
  for (int gpu = 0; gpu < 8; ++gpu) {
    graph.AddRank(absl::StrFormat("gpu%d", gpu));
  }
  for (const NvLinks& pair : Dgx1vLinks()) {
    for (int i = 0; i < pair.count; ++i) {
      graph.Join(pair.a, pair.b, link);
    }
  }
  return Finished(std::move(graph));
}

namespace {

absl::StatusOr<GraphTopology> MakeNvSwitchNode(std::string name, double bytes_per_second) {
  GraphTopology graph(std::move(name));
  for (int gpu = 0; gpu < 8; ++gpu) {
    graph.AddRank(absl::StrFormat("gpu%d", gpu));
  }
  // Two crossings: the latency of a peer copy is about 2 us (assumed from measured copies).
  AddSwitchOver(graph, "nvswitch", 0, 8,
                {.alpha = std::chrono::microseconds(1), .bandwidth = {bytes_per_second}});
  return Finished(std::move(graph));
}

}  // namespace

absl::StatusOr<GraphTopology> MakeDgxA100() { return MakeNvSwitchNode("DGX A100", 12 * 25e9); }
absl::StatusOr<GraphTopology> MakeDgxH100() { return MakeNvSwitchNode("DGX H100", 18 * 25e9); }

}  // namespace ranklab::fabric
