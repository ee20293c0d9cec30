#include "ps/round.h"

#include <gtest/gtest.h>

namespace ranklab::ps {
namespace {

std::vector<Rank> FoldNow(Round& round) {
  std::vector<Rank> folded;
  while (const std::optional<Rank> worker = round.NextToFold()) {
    folded.push_back(*worker);
  }
  return folded;
}

using Ranks = std::vector<Rank>;

TEST(Round, ArrivalOrderFoldsAsWorkersEnd) {
  Round round(3, Order::kArrival);
  round.End(2, {1.0, false});
  EXPECT_EQ(FoldNow(round), Ranks{2});
  round.End(0, {2.0, false});
  EXPECT_FALSE(round.complete());
  round.End(1, {3.0, false});
  EXPECT_EQ(FoldNow(round), (Ranks{0, 1}));
  EXPECT_TRUE(round.complete());
  EXPECT_EQ(round.weight(), 6.0);
  EXPECT_FALSE(round.overflow());
}

TEST(Round, RankOrderWaitsForTheLowerRanks) {
  Round round(3, Order::kRank);
  round.End(2, {1.0, false});
  EXPECT_EQ(FoldNow(round), Ranks{});
  round.End(0, {1.0, true});
  EXPECT_EQ(FoldNow(round), Ranks{0});
  EXPECT_FALSE(round.complete());
  round.End(1, {1.0, false});
  EXPECT_EQ(FoldNow(round), (Ranks{1, 2}));
  EXPECT_TRUE(round.complete());
  EXPECT_TRUE(round.overflow());
}

TEST(Round, ALostWorkerIsNotWaitedForButWhatItEndedStays) {
  for (const Order order : {Order::kArrival, Order::kRank}) {
    Round round(3, order);
    round.End(2, {4.0, false});
    round.Remove(2);
    round.Remove(0);
    FoldNow(round);
    EXPECT_FALSE(round.complete());
    round.End(1, {3.0, false});
    FoldNow(round);
    EXPECT_TRUE(round.complete());
    EXPECT_EQ(round.weight(), 7.0);
  }
}

TEST(Round, WithoutAnybodyItIsNeverComplete) {
  for (const Order order : {Order::kArrival, Order::kRank}) {
    Round round(2, order);
    round.Remove(0);
    round.Remove(1);
    EXPECT_EQ(FoldNow(round), Ranks{});
    EXPECT_FALSE(round.complete());
  }
}

TEST(Round, TheNextOneBeginsEmptyAndRemembersWhoIsGone) {
  Round round(2, Order::kRank);
  round.Remove(0);
  round.End(1, {5.0, true});
  FoldNow(round);
  round.Close();
  EXPECT_FALSE(round.complete());
  round.Open();
  EXPECT_EQ(round.weight(), 0.0);
  EXPECT_FALSE(round.overflow());
  round.End(1, {1.0, false});
  EXPECT_EQ(FoldNow(round), Ranks{1});
  EXPECT_TRUE(round.complete());
}

TEST(Round, WithBackupWorkersTheFirstOnesAreEnough) {
  Round round(3, Order::kArrival, /*backup_workers=*/1);
  round.End(2, {1.0, false});
  FoldNow(round);
  EXPECT_FALSE(round.complete());
  round.End(0, {4.0, false});
  EXPECT_FALSE(round.complete()) << "its gradients are not in the sum yet";
  EXPECT_EQ(FoldNow(round), Ranks{0});
  EXPECT_TRUE(round.complete());
  EXPECT_EQ(round.weight(), 5.0);
}

// Of three, two must end; with one alive, that one.
TEST(Round, WithBackupWorkersTheLivingAreEnough) {
  Round round(3, Order::kArrival, /*backup_workers=*/1);
  round.End(2, {1.0, false});
  FoldNow(round);
  round.Remove(0);
  EXPECT_FALSE(round.complete());
  round.Remove(1);
  EXPECT_TRUE(round.complete());
}

TEST(RoundDeathTest, AWorkerEndsARoundOnce) {
  Round round(2, Order::kArrival);
  round.End(0, {1.0, false});
  EXPECT_DEATH(round.End(0, {1.0, false}), "cannot end the round");
}

}  // namespace
}  // namespace ranklab::ps
