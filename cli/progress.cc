#include "cli/progress.h"

#include <algorithm>
#include <cstdio>

#include <absl/strings/str_format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace ranklab::cli {
namespace {

constexpr auto kTerminalEvery = std::chrono::milliseconds(100);
constexpr auto kLineEvery = std::chrono::seconds(5);
constexpr int kBarCells = 24;

int TerminalWidth() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(std::int64_t total)
    : total_(std::max<std::int64_t>(total, 1)),
      terminal_(isatty(STDERR_FILENO) == 1),
      started_(Clock::now()) {}

Progress::~Progress() {
  if (terminal_) {
    std::fprintf(stderr, "\r\033[K");
  }
}

void Progress::Update(std::int64_t done, const std::string& label) {
  const Clock::time_point now = Clock::now();
  if (now - printed_ < (terminal_ ? Clock::duration(kTerminalEvery) : kLineEvery)) {
    return;
  }
  printed_ = now;
  done = std::clamp<std::int64_t>(done, 0, total_);
  const double share = static_cast<double>(done) / static_cast<double>(total_);
  const double elapsed = std::chrono::duration<double>(now - started_).count();
  if (!terminal_) {
    std::fprintf(stderr, "%3.0f %% after %.0f s: %s\n", share * 100, elapsed, label.c_str());
    return;
  }
  std::string bar;
  for (int cell = 0; cell < kBarCells; ++cell) {
    bar += cell < static_cast<int>(share * kBarCells) ? "█" : "░";
  }
  std::string text = absl::StrFormat(" %3.0f %%  %.0f s  %s", share * 100, elapsed, label);
  const int room = std::max(10, TerminalWidth() - kBarCells - 2);
  text.resize(std::min<std::size_t>(text.size(), static_cast<std::size_t>(room)));
  std::fprintf(stderr, "\r\033[K%s%s", bar.c_str(), text.c_str());
  std::fflush(stderr);
}

}  // namespace ranklab::cli
