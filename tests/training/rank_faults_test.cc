#include "worker/rank_faults.h"

#include <gtest/gtest.h>

namespace ranklab::worker {
namespace {

using experiment::Heal;
using experiment::Injection;
using experiment::Kill;
using experiment::Pause;
using experiment::Phase;
using experiment::Scenario;
using experiment::ShapeLink;
using experiment::SlowPhase;

Injection At(Step at, Step until, decltype(Injection::effect) effect) {
  Injection injection;
  injection.at_step = at;
  injection.until_step = until;
  injection.effect = std::move(effect);
  return injection;
}

TEST(RankFaults, StretchHoldsFromItsFirstToItsLastStep) {
  Scenario scenario;
  scenario.injections = {At(3, 5, SlowPhase{.rank = 1, .phase = Phase::kBackward, .factor = 2.0})};
  RankFaults faults(1, 4, scenario);
  for (Step step = 1; step <= 7; ++step) {
    const auto changes = faults.BeginStep(step);
    EXPECT_EQ(faults.StretchOf(Phase::kBackward).factor, step >= 3 && step <= 5 ? 2.0 : 1.0)
        << step;
    EXPECT_TRUE(faults.StretchOf(Phase::kForward).none());
    EXPECT_EQ(changes.size(), step == 3 || step == 6 ? 1U : 0U) << step;
  }
}

TEST(RankFaults, ARotatingSlownessMovesToTheNextRank) {
  Scenario scenario;
  scenario.injections = {At(1, 0, SlowPhase{.rank = 2, .factor = 3.0, .rotate_every = 2})};
  std::vector<std::vector<Step>> slow_steps(4);
  for (Rank rank = 0; rank < 4; ++rank) {
    RankFaults faults(rank, 4, scenario);
    for (Step step = 1; step <= 8; ++step) {
      faults.BeginStep(step);
      if (!faults.StretchOf(Phase::kBackward).none()) {
        slow_steps[static_cast<std::size_t>(rank)].push_back(step);
      }
    }
  }
  EXPECT_EQ(slow_steps, (std::vector<std::vector<Step>>{{5, 6}, {7, 8}, {1, 2}, {3, 4}}));
}

TEST(RankFaults, StretchesOfOnePhaseMultiplyAndExtrasAdd) {
  Scenario scenario;
  scenario.injections = {At(1, 0, SlowPhase{.rank = 0, .factor = 2.0}),
                         At(1, 0, SlowPhase{.rank = 0, .factor = 3.0}),
                         At(1, 0, SlowPhase{.rank = 0, .extra = Nanos(70)})};
  RankFaults faults(0, 1, scenario);
  faults.BeginStep(1);
  EXPECT_EQ(faults.StretchOf(Phase::kBackward).factor, 6.0);
  EXPECT_EQ(faults.StretchOf(Phase::kBackward).extra, Nanos(70));
}

TEST(RankFaults, APauseFallsOnceOrEverySoManySteps) {
  Scenario scenario;
  scenario.injections = {At(2, 0, Pause{.rank = 0, .duration = Nanos(5)}),
                         At(3, 0, Pause{.rank = 0, .duration = Nanos(100), .every_steps = 3})};
  RankFaults faults(0, 2, scenario);
  std::vector<std::int64_t> pauses;
  for (Step step = 1; step <= 7; ++step) {
    faults.BeginStep(step);
    pauses.push_back(faults.PauseOf().count());
  }
  EXPECT_EQ(pauses, (std::vector<std::int64_t>{0, 5, 100, 0, 0, 100, 0}));
}

TEST(RankFaults, ALiveInjectionHoldsFromTheNextStepUntilReset) {
  RankFaults faults(1, 2, {});
  faults.BeginStep(1);
  faults.Add(7, At(0, 0, SlowPhase{.rank = 1, .factor = 2.0}));
  EXPECT_TRUE(faults.StretchOf(Phase::kBackward).none());
  const auto begun = faults.BeginStep(2);
  ASSERT_EQ(begun.size(), 1U);
  EXPECT_EQ(begun[0].id, 7U);
  EXPECT_TRUE(begun[0].begins);
  EXPECT_EQ(faults.StretchOf(Phase::kBackward).factor, 2.0);
  faults.Add(8, At(0, 0, Heal{}));
  const auto healed = faults.BeginStep(3);
  ASSERT_EQ(healed.size(), 2U);
  EXPECT_FALSE(healed[0].begins);
  EXPECT_TRUE(faults.StretchOf(Phase::kBackward).none());
  EXPECT_TRUE(faults.BeginStep(4).empty());
}

TEST(RankFaults, OtherRanksAreNotHit) {
  Scenario scenario;
  scenario.injections = {At(1, 0, SlowPhase{.rank = 1, .factor = 2.0}), At(1, 0, Kill{.rank = 1}),
                         At(1, 0, Pause{.rank = 1, .duration = Nanos(9)})};
  RankFaults faults(0, 2, scenario);
  EXPECT_TRUE(faults.BeginStep(1).empty());
  EXPECT_FALSE(faults.Killed());
  EXPECT_EQ(faults.PauseOf(), Nanos::zero());
}

TEST(RankFaults, ALinkConcernsItsSenderAndBothEndsWhenBothDirections) {
  Scenario scenario;
  const auto worker = [](Rank rank) { return Endpoint{Role::kWorker, rank}; };
  const Endpoint server{Role::kServer, 0};
  scenario.injections = {
      At(1, 0, ShapeLink{.from = worker(0), .to = worker(1)}),
      At(1, 0, ShapeLink{.from = worker(2), .to = worker(1), .both_directions = true}),
      At(1, 0, ShapeLink{.from = server, .to = worker(3)})};
  const auto changes = [&](Rank rank) { return RankFaults(rank, 4, scenario).BeginStep(1).size(); };
  EXPECT_EQ(changes(0), 1U);
  EXPECT_EQ(changes(1), 1U);
  EXPECT_EQ(changes(2), 1U);
  EXPECT_EQ(changes(3), 1U) << "a server has no steps: the worker shapes its way here";
}

// Two entries of one link: when the later one ends, the earlier one is still to be shaped.
TEST(RankFaults, LinksAreThoseInForceHoweverOthersEnd) {
  const Endpoint here{Role::kWorker, 0};
  const Endpoint there{Role::kWorker, 1};
  const auto link = [&](double bandwidth) {
    return ShapeLink{.from = here, .to = there, .spec = {.bandwidth = {bandwidth}}};
  };
  Scenario scenario;
  scenario.injections = {At(1, 0, link(1e6)), At(2, 2, link(1e3)), At(3, 0, link(1e5))};
  RankFaults faults(0, 2, scenario);
  const auto bandwidths = [&](Step step) {
    faults.BeginStep(step);
    std::vector<double> found;
    for (const ShapeLink& shaped : faults.Links()) {
      found.push_back(shaped.spec.bandwidth.bytes_per_second);
    }
    return found;
  };
  EXPECT_EQ(bandwidths(1), (std::vector<double>{1e6}));
  EXPECT_EQ(bandwidths(2), (std::vector<double>{1e6, 1e3}));
  EXPECT_EQ(bandwidths(3), (std::vector<double>{1e6, 1e5})) << "one ends where another begins";
}

}  // namespace
}  // namespace ranklab::worker
