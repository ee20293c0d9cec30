#include "transport/tcp/live_loop.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/transport/tcp_node.h"

namespace ranklab::transport {
namespace {

using std::chrono::milliseconds;

TEST(LiveLoop, OneThatSpinsRunsPostsAndTimersWhileItSpinsAndAfter) {
  for (const Nanos spin : {Nanos(std::chrono::microseconds(1)), Nanos(std::chrono::hours(1))}) {
    LiveLoop loop(spin);
    for (const Nanos pause : {Nanos::zero(), Nanos(std::chrono::milliseconds(5))}) {
      Ending ran;
      loop.RunAt(loop.Now() + pause, [done = ran.Done()]() mutable { done(absl::OkStatus()); });
      EXPECT_TRUE(ran.Wait().ok());
    }
    loop.Stop();
  }
}

TEST(LiveLoop, RunsPostedTasksInOrderAndNeverInline) {
  LiveLoop loop;
  std::vector<int> order;
  loop.RunAndWait([&] {
    loop.Post([&] { order.push_back(2); });
    loop.Post([&] { order.push_back(3); });
    order.push_back(1);
  });
  loop.RunAndWait([&] { order.push_back(4); });
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4}));
}

TEST(LiveLoop, RunsTimersByTimeAndTiesInCallOrder) {
  LiveLoop loop;
  std::vector<int> order;
  Ending last;
  loop.RunAndWait([&] {
    const Nanos now = loop.Now();
    loop.RunAt(now + milliseconds(20), [&, done = last.Done()]() mutable {
      order.push_back(5);
      done(absl::OkStatus());
    });
    for (int i = 1; i <= 4; ++i) {
      loop.RunAt(now + milliseconds(10), [&, i] { order.push_back(i); });
    }
    loop.RunAt(now - milliseconds(1), [&] { order.push_back(0); });
    EXPECT_TRUE(order.empty()) << "a timer of the past ran inside the call";
  });
  EXPECT_TRUE(last.Wait().ok());
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5}));
}

TEST(LiveLoop, RunsTimersOfOtherThreadsNotBeforeTheirTime) {
  LiveLoop loop;
  Ending ran;
  const Nanos when = loop.Now() + milliseconds(5);
  Nanos ran_at{};
  loop.RunAt(when, [&, done = ran.Done()]() mutable {
    ran_at = loop.Now();
    EXPECT_TRUE(loop.OnLoop());
    done(absl::OkStatus());
  });
  EXPECT_TRUE(ran.Wait().ok());
  EXPECT_GE(ran_at, when);
  EXPECT_FALSE(loop.OnLoop());
}

TEST(LiveLoop, ForgetsCancelledTimers) {
  LiveLoop loop;
  Ending last;
  bool cancelled_ran = false;
  const TimerId from_outside =
      loop.RunAt(loop.Now() + milliseconds(30), [&] { cancelled_ran = true; });
  loop.Cancel(from_outside);
  loop.RunAndWait([&] {
    const TimerId first = loop.RunAt(loop.Now() + milliseconds(5), [&] { cancelled_ran = true; });
    loop.RunAt(loop.Now() + milliseconds(40),
               [done = last.Done()]() mutable { done(absl::OkStatus()); });
    loop.Cancel(first);
    loop.Cancel(first);  // past and unknown ids are fine
    loop.Cancel(TimerId::kNone);
  });
  EXPECT_TRUE(last.Wait().ok());
  EXPECT_FALSE(cancelled_ran);
}

TEST(LiveLoop, TakesTasksFromManyThreads) {
  LiveLoop loop;
  int count = 0;  // no lock: only the loop touches it
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 1000; ++j) {
        loop.Post([&] { ++count; });
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  loop.RunAndWait([&] { EXPECT_EQ(count, 4000); });
}

TEST(LiveLoop, StopsWithWorkInItsQueue) {
  bool ran = false;
  {
    LiveLoop loop;
    loop.RunAt(loop.Now() + std::chrono::hours(1), [&] { ran = true; });
    loop.Stop();
    EXPECT_TRUE(loop.stopped());
    loop.Post([&] { ran = true; });
  }
  EXPECT_FALSE(ran);
}

TEST(LiveLoop, ReportsHowLateItsHeartbeatWas) {
  LiveLoop loop;
  Ending busy;
  loop.Post([done = busy.Done()]() mutable {
    std::this_thread::sleep_for(milliseconds(120));  // the loop is held, as by a long task
    done(absl::OkStatus());
  });
  EXPECT_TRUE(busy.Wait().ok());
  // The heartbeat comes every 50 ms, so one was due at least 20 ms ago.
  Nanos lag{};
  loop.RunAndWait([] {});
  loop.RunAndWait([&] { lag = loop.lag(); });
  for (int i = 0; i < 100 && lag < milliseconds(20); ++i) {
    loop.RunAndWait([&] { lag = std::max(lag, loop.lag()); });
  }
  EXPECT_GE(lag, milliseconds(20));
}

}  // namespace
}  // namespace ranklab::transport
