#include "sim/virtual_loop.h"

#include <functional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ranklab::sim {
namespace {

using ::testing::ElementsAre;

TEST(VirtualLoop, JumpsToTheNextEventInOrderOfTime) {
  VirtualLoop loop;
  std::vector<Nanos> seen;
  loop.RunAt(Nanos(30), [&] { seen.push_back(loop.Now()); });
  loop.RunAt(Nanos(10), [&] { seen.push_back(loop.Now()); });
  loop.RunAt(Nanos(20), [&] { seen.push_back(loop.Now()); });
  EXPECT_TRUE(loop.Run());
  EXPECT_THAT(seen, ElementsAre(Nanos(10), Nanos(20), Nanos(30)));
  EXPECT_EQ(loop.events_run(), 3);
}

TEST(VirtualLoop, RunsTiesInCallOrder) {
  VirtualLoop loop;
  std::vector<int> seen;
  for (int i = 0; i < 5; ++i) {
    loop.RunAt(Nanos(10), [&seen, i] { seen.push_back(i); });
  }
  loop.Run();
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4));
}

TEST(VirtualLoop, NeverRunsATaskInline) {
  VirtualLoop loop;
  std::vector<int> seen;
  loop.Post([&] {
    loop.Post([&] { seen.push_back(2); });
    seen.push_back(1);
  });
  EXPECT_TRUE(seen.empty());
  loop.Run();
  EXPECT_THAT(seen, ElementsAre(1, 2));
}

TEST(VirtualLoop, RunsWhatIsPastNowWithoutTurningTheClockBack) {
  VirtualLoop loop;
  loop.RunUntil(Nanos(100));
  Nanos ran{};
  loop.RunAt(Nanos(50), [&] { ran = loop.Now(); });
  loop.Run();
  EXPECT_EQ(ran, Nanos(100));
}

TEST(VirtualLoop, ForgetsACancelledTimer) {
  VirtualLoop loop;
  bool ran = false;
  const TimerId timer = loop.RunAt(Nanos(10), [&] { ran = true; });
  loop.Cancel(timer);
  loop.Cancel(timer);           // twice is fine
  loop.Cancel(TimerId::kNone);  // and so is none
  EXPECT_TRUE(loop.Run());
  EXPECT_FALSE(ran);
  EXPECT_EQ(loop.Now(), Nanos(0));  // a deadline that was met does not keep the simulation going
}

TEST(VirtualLoop, CancelsATimerFromATaskOfTheSameInstant) {
  VirtualLoop loop;
  bool ran = false;
  TimerId second = TimerId::kNone;
  loop.RunAt(Nanos(10), [&] { loop.Cancel(second); });
  second = loop.RunAt(Nanos(10), [&] { ran = true; });
  loop.Run();
  EXPECT_FALSE(ran);
}

TEST(VirtualLoop, RunUntilIncludesItsEnd) {
  VirtualLoop loop;
  int ran = 0;
  loop.RunAt(Nanos(10), [&] { ++ran; });
  loop.RunAt(Nanos(11), [&] { ++ran; });
  loop.RunUntil(Nanos(10));
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(loop.Now(), Nanos(10));
}

TEST(VirtualLoop, ShowsALivelock) {
  VirtualLoop loop;
  std::function<void()> again = [&] { loop.Post([&] { again(); }); };
  again();
  EXPECT_FALSE(loop.Run(1000));
}

}  // namespace
}  // namespace ranklab::sim
