// SIGINT, SIGTERM, SIGHUP and SIGQUIT as calls.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace ranklab::cli {

// For a command that watches for them: first thing, before any thread starts. What comes before the
// watcher waits for it.
void BlockEndingSignals();
void UnblockEndingSignals();  // in a child, before exec

class SignalWatcher {
 public:
  // Calls `on_signal` on a thread of its own for each of them, until destroyed.
  explicit SignalWatcher(std::function<void(int signal)> on_signal);
  ~SignalWatcher();

 private:
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace ranklab::cli
