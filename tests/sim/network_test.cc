// Both network models by hand, and schedules on topologies.
#include <chrono>
#include <map>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/schedule/catalog.h"
#include "core/status.h"
#include "fabric/topology/shapes.h"
#include "sim/network/network_model.h"
#include "sim/network/network_player.h"
#include "sim/schedule_player.h"

namespace ranklab::sim {
namespace {

using collectives::BuildNamed;
using collectives::Collective;
using fabric::GraphTopology;
using std::chrono::microseconds;

constexpr double kMicrosecond = 1e-6;
const fabric::LinkSpec kLink{.alpha = microseconds(1), .bandwidth = {1e9}};

std::int64_t LinksOf(const GraphTopology& topology) {
  return static_cast<std::int64_t>(topology.links().size());
}

struct Asked {
  Rank from = 0;
  Rank to = 0;
  double size = 0;
  double at = 0;
};

// When each of them arrives. In order of time.
std::vector<double> Arrivals(NetworkModel& network, const std::vector<Asked>& asked) {
  std::vector<double> arrivals(asked.size());
  std::vector<NetworkModel::Message> arrived;
  const auto advance_to = [&](double until) {
    for (auto next = network.NextInstant(); next && *next <= until; next = network.NextInstant()) {
      arrived.clear();
      network.AdvanceTo(*next, arrived);
      for (const NetworkModel::Message message : arrived) {
        arrivals[static_cast<std::size_t>(message)] = *next;
      }
    }
  };
  for (std::size_t i = 0; i < asked.size(); ++i) {
    advance_to(asked[i].at);
    network.Begin(static_cast<NetworkModel::Message>(i), asked[i].from, asked[i].to, asked[i].size,
                  0, asked[i].at);
  }
  advance_to(1e9);
  return arrivals;
}

std::vector<double> OnLinks(const GraphTopology& topology, const std::vector<Asked>& asked) {
  return Arrivals(*MakeLinkNetwork(topology, LinksOf(topology)), asked);
}
std::vector<double> AsFlows(const GraphTopology& topology, const std::vector<Asked>& asked) {
  return Arrivals(*MakeFlowNetwork(topology, LinksOf(topology)), asked);
}

// Two links of 1 us, 1000 bytes at 1 GB/s: 3 us, streaming through both.
TEST(NetworkModels, AgreeOnAMessageThatIsAlone) {
  const GraphTopology topology = *fabric::MakeSwitch(4, kLink);
  for (const double arrives :
       {OnLinks(topology, {{0, 1, 1000, 0}})[0], AsFlows(topology, {{0, 1, 1000, 0}})[0]}) {
    EXPECT_NEAR(arrives, 3 * kMicrosecond, 1e-15);
  }
}

// Two senders, one receiver: one after the other, or both at half the rate.
TEST(NetworkModels, TakeTurnsOrShareAReceiversLink) {
  const GraphTopology topology = *fabric::MakeSwitch(4, kLink);
  const std::vector<Asked> incast = {{0, 2, 1000, 0}, {1, 2, 1000, 0}};
  EXPECT_THAT(OnLinks(topology, incast),
              ::testing::ElementsAre(::testing::DoubleNear(3e-6, 1e-15),
                                     ::testing::DoubleNear(4e-6, 1e-15)));
  EXPECT_THAT(AsFlows(topology, incast),
              ::testing::ElementsAre(::testing::DoubleNear(4e-6, 1e-15),
                                     ::testing::DoubleNear(4e-6, 1e-15)));
}

// The first is alone for 1 us and sends 1000 of its 3000 bytes; then both have half: 500 bytes a
// us. The second is through after 2 more us with its 1000, when the first has 1000 left.
TEST(FlowNetwork, ComingAndGoingChangesTheRates) {
  const GraphTopology topology = *fabric::MakeSwitch(4, kLink);
  EXPECT_THAT(AsFlows(topology, {{0, 2, 3000, 0}, {1, 2, 1000, 1e-6}}),
              ::testing::ElementsAre(::testing::DoubleNear(6e-6, 1e-15),
                                     ::testing::DoubleNear(5e-6, 1e-15)));
}

TEST(NetworkModels, AnEmptyMessageTakesItsLatency) {
  const GraphTopology topology = *fabric::MakeSwitch(2, kLink);
  EXPECT_NEAR(OnLinks(topology, {{0, 1, 0, 0}})[0], 2e-6, 1e-15);
  EXPECT_NEAR(AsFlows(topology, {{0, 1, 0, 0}})[0], 2e-6, 1e-15);
}

// A ring of ranks on a ring of links, and on a switch: nobody shares a link, both models agree with
// the lean player's ports.
TEST(NetworkPlayer, ARingSharesNoLinkOnASwitch) {
  const auto ring = *BuildNamed("ring", Collective::kAllReduce, {.group_size = 6});
  const GraphTopology topology = *fabric::MakeSwitch(6, kLink);
  const auto ideal = PlaySchedule(ring, 6000, {.alpha = 2e-6, .beta = 1e-9, .eager = true});
  for (const auto make : {MakeLinkNetwork, MakeFlowNetwork}) {
    const auto network = make(topology, LinksOf(topology));
    const auto played = PlayOnNetwork(ring, 6000, topology, *network, 1);
    ASSERT_TRUE(played.ok()) << played.status();
    EXPECT_NEAR(played->ends, ideal->ends, 1e-9 * ideal->ends);
    EXPECT_EQ(played->messages, ideal->messages);
    EXPECT_NEAR(played->link_bytes[0], 10'000, 1e-6);  // 2 (P-1)/P of the buffer
  }
}

// Four to one oversubscribed: an all-to-all between leaves takes longer than on a switch, by what
// the uplinks lack.
TEST(NetworkPlayer, AnOversubscribedFatTreeIsSlower) {
  const auto exchange = *BuildNamed("pairwise", Collective::kAllToAll, {.group_size = 16});
  const auto time = [&](const fabric::FatTree& shape) {
    const GraphTopology topology = *fabric::MakeFatTree(shape, kLink, kLink);
    const auto network = MakeFlowNetwork(topology, LinksOf(topology));
    return PlayOnNetwork(exchange, 16e6, topology, *network, 1)->ends;
  };
  const double slow = time({.leaves = 4, .hosts = 4, .spines = 1});
  const double full = time({.leaves = 4, .hosts = 4, .spines = 4});
  // Of a leaf's 4 x 15 blocks of 1 MB, 48 go up one link: at least 48 ms.
  EXPECT_GE(slow, 48e-3);
  EXPECT_LT(full, 0.75 * slow);
}

TEST(NetworkPlayer, RefusesATopologyThatIsTooSmall) {
  const auto ring = *BuildNamed("ring", Collective::kAllReduce, {.group_size = 6});
  const GraphTopology topology = *fabric::MakeSwitch(5, kLink);
  const auto network = MakeFlowNetwork(topology, LinksOf(topology));
  EXPECT_THAT(MessageOf(PlayOnNetwork(ring, 1, topology, *network, 1).status()),
              ::testing::HasSubstr("switch has 5 ranks, the group 6"));
}

}  // namespace
}  // namespace ranklab::sim
