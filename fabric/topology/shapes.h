// Topologies by name. Each returns a finished graph. Errors, of all: InvalidArgument, sizes below 1
// or a graph above graph.h's limits.
#pragma once

#include <vector>

#include <absl/status/statusor.h>

#include "fabric/topology/graph.h"

namespace ranklab::fabric {

// Every rank on one crossbar: a link to it and one from it.
absl::StatusOr<GraphTopology> MakeSwitch(int ranks, const LinkSpec& link);
// Links between neighbours, both ways; a message goes the shorter way round.
absl::StatusOr<GraphTopology> MakeRing(int ranks, const LinkSpec& link);
// A link from each rank to each other.
absl::StatusOr<GraphTopology> MakeFullMesh(int ranks, const LinkSpec& link);
// A ring in each dimension, rank = mixed radix, dimension 0 fastest. Two or three dimensions, or
// any.
absl::StatusOr<GraphTopology> MakeTorus(const std::vector<int>& dims, const LinkSpec& link);

// `hosts` ranks at each of `routers` routers, all routers of a group joined, and one link between
// each two groups, from router to router in turn. Routes are the shortest, so that one may cross
// two of those where it saves local ones. Source: Kim, Dally, Scott and Abts, ISCA 2008.
struct Dragonfly {
  int groups = 2;
  int routers = 2;  // of a group
  int hosts = 1;    // of a router
};
absl::StatusOr<GraphTopology> MakeDragonfly(const Dragonfly& shape, const LinkSpec& host,
                                            const LinkSpec& local, const LinkSpec& global);

// Two levels: `leaves` of `hosts` ranks, each leaf joined to each of `spines`. Oversubscription is
// hosts x host bandwidth over spines x uplink bandwidth. Source: Leiserson, IEEE ToC C-34(10),
// 1985.
struct FatTree {
  int leaves = 2;
  int hosts = 2;
  int spines = 1;
};
absl::StatusOr<GraphTopology> MakeFatTree(const FatTree& shape, const LinkSpec& host,
                                          const LinkSpec& uplink);

// Nodes of `gpus` ranks on a switch inside; GPU i of every node on rail i, and the rails on one
// spine. A message to another rail goes through the node's switch first if that is shorter.
struct Rails {
  int nodes = 2;
  int gpus = 8;
};
absl::StatusOr<GraphTopology> MakeRails(const Rails& shape, const LinkSpec& inside,
                                        const LinkSpec& rail, const LinkSpec& spine);

// A node of ranks on PCIe: `sockets` CPUs joined with each other, `switches` at each, `gpus` at
// each switch.
struct PcieTree {
  int sockets = 2;
  int switches = 2;  // of a socket
  int gpus = 2;      // of a switch
};
absl::StatusOr<GraphTopology> MakePcieTree(const PcieTree& shape, const LinkSpec& pcie,
                                           const LinkSpec& between_sockets);

// The hybrid cube mesh of eight V100 with six NVLinks each. Source: `nvidia-smi topo -m` of a DGX-1
// in microsoft/msccl-tools.
struct NvLinks {
  int a = 0;
  int b = 0;
  int count = 0;
};
std::vector<NvLinks> Dgx1vLinks();
// `link`: of one NVLink.
absl::StatusOr<GraphTopology> MakeDgx1v(const LinkSpec& link);
// Eight GPUs on NVSwitch, 12 and 18 links of 25 GB/s each.
absl::StatusOr<GraphTopology> MakeDgxA100();
absl::StatusOr<GraphTopology> MakeDgxH100();

}  // namespace ranklab::fabric
