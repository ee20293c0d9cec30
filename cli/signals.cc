#include "cli/signals.h"

#include <csignal>
#include <ctime>
#include <utility>

namespace ranklab::cli {
namespace {

sigset_t EndingSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGHUP);  // the terminal, or the connection to it, is gone
  sigaddset(&signals, SIGQUIT);
  return signals;
}

}  // namespace

void BlockEndingSignals() {
  const sigset_t signals = EndingSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

void UnblockEndingSignals() {
  const sigset_t signals = EndingSignals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

SignalWatcher::SignalWatcher(std::function<void(int)> on_signal)
    : thread_([this, on_signal = std::move(on_signal)] {
        const sigset_t signals = EndingSignals();
        const timespec tick{.tv_sec = 0, .tv_nsec = 50'000'000};
        while (!stopping_.load()) {
          const int signal = sigtimedwait(&signals, nullptr, &tick);
          if (signal > 0) {
            on_signal(signal);
          }
        }
      }) {}

SignalWatcher::~SignalWatcher() {
  stopping_.store(true);
  thread_.join();
}

}  // namespace ranklab::cli
