#include "cli/child_processes.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/signals.h"
#include "core/status.h"

namespace ranklab::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Nanos kBetweenLooks = std::chrono::milliseconds(5);

// In the child: never returns. Only async-signal-safe calls.
[[noreturn]] void Exec(const Launch& launch, char* const* arguments, pid_t parent) {
  // Ctrl-C is for the parent, which ends its work in order; and a parent that is killed takes us
  // with it.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) {
    _exit(127);
  }
  if (launch.stdin_fd >= 0) {
    dup2(launch.stdin_fd, STDIN_FILENO);
  }
  if (launch.stdout_fd >= 0) {
    dup2(launch.stdout_fd, STDOUT_FILENO);
  }
  if (launch.kept_fd >= 0) {
    fcntl(launch.kept_fd, F_SETFD, 0);
  }
  UnblockEndingSignals();
  execvp(launch.program.c_str(), arguments);
  _exit(127);
}

}  // namespace

absl::Status ChildProcesses::Start(const Launch& launch) {
  std::vector<std::string> words = launch.arguments;
  words.insert(words.begin(), launch.program == kThisProgram ? "ranklab" : launch.program);
  std::vector<char*> pointers;
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    return Internal("fork of %s: %s", launch.name, std::strerror(errno));
  }
  if (pid == 0) {
    Exec(launch, pointers.data(), parent);
  }
  processes_.push_back({.name = launch.name, .pid = pid});
  return absl::OkStatus();
}

ChildProcesses::~ChildProcesses() {
  Reap();
  for (const Process& process : processes_) {
    if (!process.ended) {
      kill(process.pid, SIGTERM);
    }
  }
  End(std::chrono::seconds(2));
}

void ChildProcesses::Reap() {
  for (Process& process : processes_) {
    if (!process.ended && waitpid(process.pid, &process.wait_status, WNOHANG) == process.pid) {
      process.ended = true;
    }
  }
}

void ChildProcesses::End(Nanos grace) {
  const Clock::time_point deadline = Clock::now() + grace;
  const auto all_ended = [this] {
    Reap();
    return std::all_of(processes_.begin(), processes_.end(),
                       [](const Process& process) { return process.ended; });
  };
  while (!all_ended() && Clock::now() < deadline) {
    std::this_thread::sleep_for(kBetweenLooks);
  }
  for (Process& process : processes_) {
    if (!process.ended) {
      // A stopped process takes SIGKILL too.
      kill(process.pid, SIGKILL);
      process.killed_here = true;
      waitpid(process.pid, &process.wait_status, 0);
      process.ended = true;
    }
  }
}

std::string ChildProcesses::HowOneEnded(Nanos patience) {
  const Clock::time_point deadline = Clock::now() + patience;
  Reap();
  std::string how = HowOneOfTheReapedEnded();
  while (how.empty() && Clock::now() < deadline) {
    std::this_thread::sleep_for(kBetweenLooks);
    Reap();
    how = HowOneOfTheReapedEnded();
  }
  return how;
}

std::string ChildProcesses::HowOneOfTheReapedEnded() const {
  for (const Process& process : processes_) {
    if (!process.ended || process.killed_here) {
      continue;
    }
    if (WIFSIGNALED(process.wait_status)) {
      const int signal = WTERMSIG(process.wait_status);
      return absl::StrFormat("%s was ended by signal %d (%s)", process.name, signal,
                             strsignal(signal));
    }
    if (WIFEXITED(process.wait_status) && WEXITSTATUS(process.wait_status) > 3) {
      return absl::StrFormat("%s ended with code %d", process.name,
                             WEXITSTATUS(process.wait_status));
    }
  }
  return "";
}

absl::StatusOr<Pipe> MakePipe() {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return Internal("pipe: %s", std::strerror(errno));
  }
  return Pipe{.read_fd = ends[0], .write_fd = ends[1]};
}

absl::StatusOr<std::string> ReadLine(int fd, Nanos timeout, const std::string& what) {
  const Clock::time_point deadline = Clock::now() + timeout;
  std::string line;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    if (left <= 0 || poll(&waiting, 1, static_cast<int>(left)) == 0) {
      return DeadlineExceeded("waited %.0f s for %s", static_cast<double>(timeout.count()) * 1e-9,
                              what);
    }
    char byte = 0;
    const ssize_t got = read(fd, &byte, 1);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return Unavailable("ended before: %s", what);
    }
    if (byte == '\n') {
      return line;
    }
    line.push_back(byte);
  }
}

}  // namespace ranklab::cli
