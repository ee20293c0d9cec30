#include "ps/consistency.h"

#include <gtest/gtest.h>

namespace ranklab::ps {
namespace {

// A gate of three workers that have finished so many steps.
StalenessGate GateAt(std::int64_t bound, const std::vector<Step>& finished) {
  StalenessGate gate(static_cast<int>(finished.size()), {bound});
  for (std::size_t worker = 0; worker < finished.size(); ++worker) {
    for (Step step = 1; step <= finished[worker]; ++step) {
      gate.Finish(static_cast<Rank>(worker), step);
    }
  }
  return gate;
}

struct Row {
  std::int64_t bound;
  std::vector<Step> finished;
  Step step;  // that worker 0 wants to begin
  bool may_pull;
};

TEST(StalenessGate, TruthTable) {
  constexpr std::int64_t kNone = StalenessBound::kUnbounded;
  const Row rows[] = {
      // Everybody may begin step 1, whatever the bound.
      {0, {0, 0, 0}, 1, true},
      {2, {0, 0, 0}, 1, true},
      {kNone, {0, 0, 0}, 1, true},
      // Bound 0: step k once all have finished k - 1.
      {0, {1, 0, 1}, 2, false},
      {0, {1, 1, 1}, 2, true},
      {0, {1, 2, 2}, 2, true},
      // Bound s: step k once all have finished k - 1 - s.
      {1, {1, 0, 0}, 2, true},
      {1, {2, 0, 2}, 3, false},
      {1, {2, 1, 2}, 3, true},
      {2, {2, 0, 0}, 3, true},
      {2, {3, 0, 3}, 4, false},
      {2, {3, 1, 1}, 4, true},
      {kNone, {1000, 0, 0}, 1001, true},
      // Read my writes, whatever the bound.
      {2, {1, 5, 5}, 3, false},
      {kNone, {1, 5, 5}, 3, false},
      // A step that the worker has finished already.
      {0, {3, 3, 3}, 1, true},
      {0, {3, 2, 3}, 3, true},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(GateAt(row.bound, row.finished).MayPull(0, row.step), row.may_pull)
        << "bound " << row.bound << ", finished " << testing::PrintToString(row.finished)
        << ", step " << row.step;
  }
}

TEST(StalenessGate, ALostWorkerHoldsNobodyBackAndMayNotRead) {
  StalenessGate gate = GateAt(0, {1, 0, 1});
  EXPECT_FALSE(gate.MayPull(0, 2));
  gate.Remove(1);
  gate.Remove(1);
  EXPECT_TRUE(gate.MayPull(0, 2));
  EXPECT_FALSE(gate.MayPull(1, 1));
  EXPECT_EQ(gate.slowest_step(), 1);
}

TEST(StalenessGate, AWorkerThatLeftHoldsNobodyBackAndMayRead) {
  StalenessGate gate = GateAt(1, {4, 1, 4});
  EXPECT_FALSE(gate.MayPull(0, 5));
  gate.Leave(1);
  EXPECT_TRUE(gate.MayPull(0, 5));
  EXPECT_TRUE(gate.MayPull(1, 1));
  EXPECT_FALSE(gate.live(1));
  gate.Remove(1);
  gate.Leave(1);  // no way back
  EXPECT_FALSE(gate.MayPull(1, 1));
}

TEST(StalenessGate, SlowestIsOfTheLiveOrWithoutThemOfAll) {
  StalenessGate gate = GateAt(StalenessBound::kUnbounded, {2, 5, 3});
  EXPECT_EQ(gate.slowest_step(), 2);
  gate.Remove(0);
  EXPECT_EQ(gate.slowest_step(), 3);
  gate.Remove(2);
  EXPECT_EQ(gate.slowest_step(), 5);
  gate.Remove(1);
  EXPECT_EQ(gate.slowest_step(), 2);
}

TEST(StalenessGateDeathTest, StepsOfAWorkerComeInOrder) {
  StalenessGate gate(2, {0});
  EXPECT_DEATH(gate.Finish(0, 2), "finishes step 2 after step 0");
}

}  // namespace
}  // namespace ranklab::ps
