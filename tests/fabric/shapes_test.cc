#include "fabric/topology/shapes.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/status.h"

namespace ranklab::fabric {
namespace {

using ::testing::HasSubstr;

const LinkSpec kLink{.alpha = std::chrono::microseconds(1), .bandwidth = {1e9}};

std::vector<LinkId> RouteOf(const GraphTopology& graph, Rank from, Rank to,
                            std::uint64_t flow = 0) {
  std::vector<LinkId> route;
  graph.Route(from, to, flow, route);
  return route;
}

std::size_t Hops(const absl::StatusOr<GraphTopology>& graph, Rank from, Rank to) {
  EXPECT_TRUE(graph.ok()) << graph.status();
  return RouteOf(*graph, from, to).size();
}

TEST(Shapes, HaveTheirDistances) {
  EXPECT_EQ(Hops(MakeSwitch(5, kLink), 0, 4), 2U);
  EXPECT_EQ(Hops(MakeRing(8, kLink), 0, 3), 3U);
  EXPECT_EQ(Hops(MakeRing(8, kLink), 0, 6), 2U);  // the other way round
  EXPECT_EQ(Hops(MakeFullMesh(6, kLink), 1, 5), 1U);
  EXPECT_EQ(Hops(MakeTorus({4, 4}, kLink), 0, 10), 4U);     // (2, 2)
  EXPECT_EQ(Hops(MakeTorus({4, 4}, kLink), 0, 15), 2U);     // (3, 3): one back in each
  EXPECT_EQ(Hops(MakeTorus({2, 3, 4}, kLink), 0, 23), 3U);  // (1, 2, 3)
  EXPECT_EQ(Hops(MakeFatTree({.leaves = 4, .hosts = 2, .spines = 2}, kLink, kLink), 0, 1), 2U);
  EXPECT_EQ(Hops(MakeFatTree({.leaves = 4, .hosts = 2, .spines = 2}, kLink, kLink), 0, 7), 4U);
  const Rails rails = {.nodes = 3, .gpus = 4};
  EXPECT_EQ(Hops(MakeRails(rails, kLink, kLink, kLink), 0, 3), 2U);  // one node
  EXPECT_EQ(Hops(MakeRails(rails, kLink, kLink, kLink), 1, 9), 2U);  // one rail
  EXPECT_EQ(Hops(MakeRails(rails, kLink, kLink, kLink), 0, 9), 4U);
  EXPECT_EQ(Hops(MakePcieTree({.sockets = 2, .switches = 2, .gpus = 2}, kLink, kLink), 0, 1), 2U);
  EXPECT_EQ(Hops(MakePcieTree({.sockets = 2, .switches = 2, .gpus = 2}, kLink, kLink), 0, 2), 4U);
  EXPECT_EQ(Hops(MakePcieTree({.sockets = 2, .switches = 2, .gpus = 2}, kLink, kLink), 0, 7), 5U);
  EXPECT_EQ(Hops(MakeDgxH100(), 0, 7), 2U);
}

// Host, local, global, local, host: never more.
TEST(Dragonfly, NoRouteIsLongerThanFiveLinks) {
  const auto graph = MakeDragonfly({.groups = 5, .routers = 4, .hosts = 2}, kLink, kLink, kLink);
  ASSERT_TRUE(graph.ok());
  for (Rank from = 0; from < graph->world_size(); ++from) {
    for (Rank to = 0; to < graph->world_size(); ++to) {
      EXPECT_LE(from == to ? 0U : RouteOf(*graph, from, to).size(), 5U);
    }
  }
}

TEST(Dgx1v, HasSixLinksAtEachGpu) {
  const auto graph = MakeDgx1v(kLink);
  ASSERT_TRUE(graph.ok());
  std::map<GraphTopology::Node, int> leaving;
  for (const GraphTopology::Link& link : graph->links()) {
    ++leaving[link.from];
  }
  for (int gpu = 0; gpu < 8; ++gpu) {
    EXPECT_EQ(leaving[gpu], 6);
  }
  EXPECT_EQ(Hops(graph, 0, 4), 1U);
  EXPECT_EQ(Hops(graph, 0, 5), 2U);
}

// The same flow takes the same path, many flows take all.
TEST(GraphTopology, FlowsAreHashedOverEqualPaths) {
  const auto graph = MakeFatTree({.leaves = 2, .hosts = 1, .spines = 4}, kLink, kLink);
  ASSERT_TRUE(graph.ok());
  std::set<LinkId> uplinks;
  for (std::uint64_t flow = 0; flow < 100; ++flow) {
    const auto route = RouteOf(*graph, 0, 1, flow);
    EXPECT_EQ(route, RouteOf(*graph, 0, 1, flow));
    uplinks.insert(route[1]);
  }
  EXPECT_EQ(uplinks.size(), 4U);
}

TEST(GraphTopology, EveryRouteIsAPath) {
  for (const auto& graph :
       {MakeTorus({3, 4}, kLink), MakeRails({.nodes = 2, .gpus = 3}, kLink, kLink, kLink),
        MakeDragonfly({.groups = 3, .routers = 2, .hosts = 2}, kLink, kLink, kLink)}) {
    ASSERT_TRUE(graph.ok());
    for (Rank from = 0; from < graph->world_size(); ++from) {
      for (Rank to = 0; to < graph->world_size(); ++to) {
        GraphTopology::Node at = graph->NodeOf(from);
        for (const LinkId id : from == to ? std::vector<LinkId>() : RouteOf(*graph, from, to, 3)) {
          const auto& link = graph->links()[static_cast<std::size_t>(id)];
          ASSERT_EQ(link.from, at);
          at = link.to;
        }
        ASSERT_EQ(at, graph->NodeOf(to));
      }
    }
  }
}

TEST(Shapes, RefuseSizesThatMakeNoSense) {
  EXPECT_THAT(MessageOf(MakeSwitch(0, kLink).status()), HasSubstr("a size of 0"));
  EXPECT_THAT(MessageOf(MakeTorus({4, -1}, kLink).status()), HasSubstr("a size of -1"));
  EXPECT_THAT(MessageOf(MakeTorus({1 << 20, 1 << 20}, kLink).status()), HasSubstr("more than"));
  EXPECT_THAT(MessageOf(MakeFullMesh(8000, kLink).status()), HasSubstr("more than"));
  GraphTopology apart("apart");
  apart.AddRank("gpu0");
  apart.AddRank("gpu1");
  EXPECT_THAT(MessageOf(apart.Finish()), HasSubstr("apart: no path from gpu1 to gpu0"));
}

}  // namespace
}  // namespace ranklab::fabric
