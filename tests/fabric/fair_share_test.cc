#include "fabric/fair_share.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/random.h"

namespace ranklab::fabric {
namespace {

using Links = std::vector<std::int64_t>;

TEST(FairShare, OneLinkIsCutIntoEqualParts) {
  FairShare shares({12.0});
  const auto a = shares.Add(Links{0});
  EXPECT_DOUBLE_EQ(shares.rate(a), 12);
  const auto b = shares.Add(Links{0});
  const auto c = shares.Add(Links{0});
  EXPECT_DOUBLE_EQ(shares.rate(a), 4);
  shares.Remove(b);
  EXPECT_DOUBLE_EQ(shares.rate(a), 6);
  EXPECT_DOUBLE_EQ(shares.rate(c), 6);
}

// Two links of 10 and 4: the long flow gets what the narrow one allows, the short one the rest.
TEST(FairShare, WhatOneCannotUseTheOthersGet) {
  FairShare shares({10.0, 4.0});
  const auto across = shares.Add(Links{0, 1});
  const auto wide = shares.Add(Links{0});
  const auto narrow = shares.Add(Links{1});
  EXPECT_DOUBLE_EQ(shares.rate(across), 2);
  EXPECT_DOUBLE_EQ(shares.rate(narrow), 2);
  EXPECT_DOUBLE_EQ(shares.rate(wide), 8);
  shares.Remove(narrow);
  EXPECT_DOUBLE_EQ(shares.rate(across), 4);
  EXPECT_DOUBLE_EQ(shares.rate(wide), 6);
  shares.SetCapacity(1, 100);
  EXPECT_DOUBLE_EQ(shares.rate(across), 5);
  EXPECT_DOUBLE_EQ(shares.rate(wide), 5);
}

// The textbook's line of links (Bertsekas and Gallager, figure 6.35 in spirit): 1 unit each, one
// flow across all, one more on each but two on the middle one.
TEST(FairShare, ALineOfLinksIsFilledStepByStep) {
  FairShare shares({1.0, 1.0, 1.0});
  const auto across = shares.Add(Links{0, 1, 2});
  const auto left = shares.Add(Links{0});
  const auto middle = shares.Add(Links{1});
  const auto middle_too = shares.Add(Links{1});
  const auto right = shares.Add(Links{2});
  EXPECT_DOUBLE_EQ(shares.rate(across), 1.0 / 3);
  EXPECT_DOUBLE_EQ(shares.rate(middle), 1.0 / 3);
  EXPECT_DOUBLE_EQ(shares.rate(middle_too), 1.0 / 3);
  EXPECT_DOUBLE_EQ(shares.rate(left), 2.0 / 3);
  EXPECT_DOUBLE_EQ(shares.rate(right), 2.0 / 3);
}

// A hundred pairs on links of their own: one more flow on a link is felt there only.
TEST(FairShare, OnlyThoseBehindAFullLinkAreTouched) {
  FairShare shares(std::vector<double>(100, 5.0));
  for (std::int64_t link = 0; link < 100; ++link) {
    shares.Add(Links{link});
  }
  shares.Add(Links{42});
  EXPECT_EQ(shares.touched().size(), 2U);
}

// A link that is wide enough joins nobody.
TEST(FairShare, AWideLinkInTheMiddleJoinsNobody) {
  std::vector<double> capacities(100, 5.0);
  capacities.push_back(1e6);
  FairShare shares(capacities);
  for (std::int64_t link = 0; link < 100; ++link) {
    shares.Add(Links{link, 100});
  }
  shares.Add(Links{42, 100});
  EXPECT_EQ(shares.touched().size(), 2U);
  shares.Remove(7);
  EXPECT_EQ(shares.touched().size(), 0U);  // it was alone behind its full link
}

// From scratch, by definition: all flows at once.
std::map<FairShare::Flow, double> Filled(const std::vector<double>& capacities,
                                         const std::map<FairShare::Flow, Links>& flows) {
  std::vector<double> left = capacities;
  std::map<FairShare::Flow, double> rates;
  while (rates.size() < flows.size()) {
    double least = std::numeric_limits<double>::infinity();
    std::size_t at = 0;
    std::vector<int> open(capacities.size());
    for (const auto& [flow, links] : flows) {
      for (const std::int64_t link : links) {
        open[static_cast<std::size_t>(link)] += rates.contains(flow) ? 0 : 1;
      }
    }
    for (std::size_t link = 0; link < capacities.size(); ++link) {
      if (open[link] > 0 && left[link] / open[link] < least) {
        least = left[link] / open[link];
        at = link;
      }
    }
    for (const auto& [flow, links] : flows) {
      if (!rates.contains(flow) &&
          std::find(links.begin(), links.end(), static_cast<std::int64_t>(at)) != links.end()) {
        rates[flow] = least;
        for (const std::int64_t link : links) {
          left[static_cast<std::size_t>(link)] -= least;
        }
      }
    }
  }
  return rates;
}

TEST(FairShare, ComingAndGoingGivesTheRatesOfFillingFromScratch) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    const std::size_t links = 2 + random.Below(12);
    std::vector<double> capacities;
    for (std::size_t i = 0; i < links; ++i) {
      capacities.push_back(1.0 + static_cast<double>(random.Below(20)));
    }
    FairShare shares(capacities);
    std::map<FairShare::Flow, Links> flows;
    for (int change = 0; change < 120; ++change) {
      if (flows.size() > 1 && random.Below(3) == 0) {
        const auto gone =
            std::next(flows.begin(), static_cast<std::ptrdiff_t>(random.Below(flows.size())));
        shares.Remove(gone->first);
        flows.erase(gone);
      } else if (random.Below(8) == 0) {
        const std::size_t link = random.Below(links);
        capacities[link] = 1.0 + static_cast<double>(random.Below(20));
        shares.SetCapacity(static_cast<std::int64_t>(link), capacities[link]);
      } else {
        std::set<std::int64_t> path;
        const std::size_t length = 1 + random.Below(4);
        for (std::size_t i = 0; i < length; ++i) {
          path.insert(static_cast<std::int64_t>(random.Below(links)));
        }
        const Links route(path.begin(), path.end());
        flows[shares.Add(route)] = route;
      }
      for (const auto& [flow, rate] : Filled(capacities, flows)) {
        ASSERT_NEAR(shares.rate(flow), rate, 1e-6 * rate)
            << "seed " << seed << ", change " << change;
      }
    }
  }
}

}  // namespace
}  // namespace ranklab::fabric
