#include "transport/tcp/live_loop.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include "core/check.h"
#include "transport/tcp/asio.h"

namespace ranklab::transport {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Nanos kHeartbeat = std::chrono::milliseconds(50);
// A sleeping thread is awake again 0.05 to 0.2 ms after its alarm. So the alarm is set so much
// earlier, and the loop looks at its sockets, without sleeping, until the timer is due.
constexpr Nanos kAwakeBefore = std::chrono::microseconds(150);

Nanos ClockNow() { return Clock::now().time_since_epoch(); }

}  // namespace

// One Asio timer stands for the first of our own: Asio does not order timers of equal time.
class LiveLoop::Core {
 public:
  explicit Core(Nanos spin) : spin_(spin), work_(io_.get_executor()), alarm_(io_) {
    next_heartbeat_ = ClockNow() + kHeartbeat;
    Beat();
    thread_ = std::thread([this] {
      if (spin_ > Nanos::zero()) {
        RunSpinning();
      } else {
        io_.run();
      }
    });
  }

  asio::io_context& io() { return io_; }
  bool OnLoop() { return io_.get_executor().running_in_this_thread(); }
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }
  Nanos spin() const { return spin_; }
  Nanos lag() const { return Nanos(lag_.load(std::memory_order_relaxed)); }

  void Post(Task task) { asio::post(io_, std::move(task)); }

  TimerId RunAt(Nanos when, Task task) {
    const std::uint64_t order = next_order_.fetch_add(1, std::memory_order_relaxed);
    if (OnLoop()) {
      Add(when, order, std::move(task));
    } else {
      Post([this, when, order, task = std::move(task)]() mutable {
        Add(when, order, std::move(task));
      });
    }
    return static_cast<TimerId>(order);
  }

  void Cancel(TimerId timer) {
    if (OnLoop()) {
      Remove(static_cast<std::uint64_t>(timer));
    } else {
      Post([this, timer] { Remove(static_cast<std::uint64_t>(timer)); });
    }
  }

  void Stop() {
    RANKLAB_CHECK(!OnLoop(), "the loop cannot wait for itself");
    stopped_.store(true, std::memory_order_release);
    io_.stop();
    if (thread_.joinable()) {
      thread_.join();
    }
  }

 private:
  void RunSpinning() {
    Nanos until = ClockNow() + spin_;
    while (!io_.stopped()) {
      if (io_.poll() > 0) {
        until = ClockNow() + spin_;
      } else if (ClockNow() < until) {
        std::this_thread::yield();  // to a peer that shares the core
      } else {
        io_.run_one();
        until = ClockNow() + spin_;
      }
    }
  }

  using Key = std::pair<Nanos, std::uint64_t>;  // when, order of the call

  void Add(Nanos when, std::uint64_t order, Task task) {
    const auto [timer, added] = queue_.emplace(Key{when, order}, std::move(task));
    RANKLAB_CHECK(added);
    timers_.emplace(order, when);
    if (timer == queue_.begin()) {
      SetAlarm();
    }
  }

  void Remove(std::uint64_t order) {
    const auto found = timers_.find(order);
    if (found == timers_.end()) {
      return;
    }
    queue_.erase(Key{found->second, order});  // an alarm for nothing does no harm
    timers_.erase(found);
  }

  void SetAlarm() {
    if (queue_.empty() || awake_) {
      return;
    }
    alarm_.expires_at(Clock::time_point(queue_.begin()->first.first - kAwakeBefore));
    alarm_.async_wait([this](const error_code& error) {
      if (!error) {  // otherwise a later SetAlarm took its place
        RunDue();
      }
    });
  }

  // Only what is due now: a timer that always sets another in the past must not shut out the
  // sockets.
  void RunDue() {
    awake_ = true;  // what the tasks add is seen below
    const Nanos now = ClockNow();
    while (!queue_.empty() && queue_.begin()->first.first <= now) {
      const auto first = queue_.begin();
      Task task = std::move(first->second);
      timers_.erase(first->first.second);
      queue_.erase(first);
      task();
    }
    awake_ = !queue_.empty() && queue_.begin()->first.first - kAwakeBefore <= ClockNow();
    if (awake_) {
      std::this_thread::yield();
      Post([this] { RunDue(); });
    } else {
      SetAlarm();
    }
  }

  void Beat() {
    const std::uint64_t order = next_order_.fetch_add(1, std::memory_order_relaxed);
    Add(next_heartbeat_, order, [this] {
      const Nanos now = ClockNow();
      lag_.store((now - next_heartbeat_).count(), std::memory_order_relaxed);
      next_heartbeat_ = now + kHeartbeat;
      Beat();
    });
  }

  const Nanos spin_;
  asio::io_context io_;  // not for one thread only: that would reorder posts from the loop
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  asio::steady_timer alarm_;
  std::map<Key, Task> queue_;
  bool awake_ = false;                     // RunDue runs, or is posted: no alarm is needed
  std::map<std::uint64_t, Nanos> timers_;  // order -> when, of those still queued
  Nanos next_heartbeat_{};
  std::atomic<std::uint64_t> next_order_{1};
  std::atomic<std::int64_t> lag_{0};
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

LiveLoop::LiveLoop(Nanos spin) : core_(std::make_unique<Core>(spin)) {}

LiveLoop::~LiveLoop() { Stop(); }

Nanos LiveLoop::Now() const { return ClockNow(); }

void LiveLoop::Post(Task task) { core_->Post(std::move(task)); }

TimerId LiveLoop::RunAt(Nanos when, Task task) { return core_->RunAt(when, std::move(task)); }

void LiveLoop::Cancel(TimerId timer) { core_->Cancel(timer); }

void LiveLoop::RunAndWait(Task task) {
  RANKLAB_CHECK(!OnLoop(), "the loop cannot wait for itself");
  RANKLAB_CHECK(!core_->stopped(), "the loop was stopped");
  std::mutex mutex;
  std::condition_variable finished;
  bool ran = false;
  Post([&] {
    task();
    const std::lock_guard lock(mutex);
    ran = true;
    finished.notify_one();  // under the lock: afterwards these may be gone
  });
  std::unique_lock lock(mutex);
  finished.wait(lock, [&ran] { return ran; });
}

void LiveLoop::Stop() { core_->Stop(); }

bool LiveLoop::OnLoop() const { return core_->OnLoop(); }

bool LiveLoop::stopped() const { return core_->stopped(); }

Nanos LiveLoop::spin() const { return core_->spin(); }

Nanos LiveLoop::lag() const { return core_->lag(); }

boost::asio::io_context& LiveLoop::io_context() { return core_->io(); }

}  // namespace ranklab::transport
