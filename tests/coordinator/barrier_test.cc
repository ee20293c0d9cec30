#include "coordinator/barrier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ranklab::coordinator {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Endpoint Worker(Rank rank) { return {.role = Role::kWorker, .rank = rank}; }
Endpoint Server(Rank rank) { return {.role = Role::kServer, .rank = rank}; }

TEST(Barrier, OpensForAllWithTheLastWorker) {
  Barrier barrier(3);
  EXPECT_THAT(barrier.Arrive(Worker(2)), IsEmpty());
  EXPECT_THAT(barrier.Arrive(Worker(0)), IsEmpty());
  EXPECT_FALSE(barrier.open());
  EXPECT_THAT(barrier.Arrive(Worker(1)), ElementsAre(Worker(0), Worker(1), Worker(2)));
  EXPECT_TRUE(barrier.open());
}

TEST(Barrier, OneWorkerWaitsForNobody) {
  Barrier barrier(1);
  EXPECT_THAT(barrier.Arrive(Worker(0)), ElementsAre(Worker(0)));
}

TEST(Barrier, ServersWaitForWorkersAndNotTheOtherWayRound) {
  Barrier barrier(2);
  EXPECT_THAT(barrier.Arrive(Server(1)), IsEmpty());
  EXPECT_THAT(barrier.Arrive(Worker(0)), IsEmpty());
  EXPECT_THAT(barrier.Arrive(Worker(1)), ElementsAre(Worker(0), Worker(1), Server(1)));
  EXPECT_THAT(barrier.Arrive(Server(0)), ElementsAre(Server(0))) << "a late server goes on at once";
}

TEST(Barrier, ASecondArrivalNeitherCountsNorReleases) {
  Barrier barrier(2);
  EXPECT_THAT(barrier.Arrive(Worker(0)), IsEmpty());
  EXPECT_THAT(barrier.Arrive(Worker(0)), IsEmpty());
  EXPECT_FALSE(barrier.open());
  barrier.Arrive(Worker(1));
  EXPECT_THAT(barrier.Arrive(Worker(1)), IsEmpty());
}

TEST(Barrier, KeepsWhatEachWorkerBrings) {
  Barrier barrier(3);
  barrier.Arrive(Worker(2), "id");
  barrier.Arrive(Worker(2), "another");
  barrier.Arrive(Server(0), "a server's");
  barrier.Arrive(Worker(0), "0");
  barrier.Arrive(Worker(1));
  EXPECT_THAT(barrier.tokens(), ElementsAre("0", "", "id"));
}

TEST(Barrier, NamesTheWorkersThatAreMissing) {
  Barrier barrier(4);
  barrier.Arrive(Worker(1));
  barrier.Arrive(Server(0));
  EXPECT_THAT(barrier.MissingWorkers(), ElementsAre(Worker(0), Worker(2), Worker(3)));
}

}  // namespace
}  // namespace ranklab::coordinator
