#include "cli/local_cluster.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

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

// In the child: never returns. Only async-signal-safe calls.
[[noreturn]] void Exec(char* const* arguments, pid_t parent, int announce_fd) {
  // Ctrl-C is for the parent, which ends the lab in order; and a parent that is killed takes us
  // with it.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) {
    _exit(127);
  }
  if (announce_fd >= 0) {
    fcntl(announce_fd, F_SETFD, 0);
  }
  UnblockEndingSignals();
  execv("/proc/self/exe", arguments);
  _exit(127);
}

// The line that the coordinator writes once it listens.
absl::StatusOr<std::string> ReadLine(int fd, Nanos timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  std::string line;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    if (left <= 0 || poll(&waiting, 1, static_cast<int>(left)) == 0) {
      return DeadlineExceeded("waited %.0f s for the coordinator process to listen",
                              static_cast<double>(timeout.count()) * 1e-9);
    }
    char byte = 0;
    const ssize_t got = read(fd, &byte, 1);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return Unavailable("the coordinator process ended before it listened");
    }
    if (byte == '\n') {
      return line;
    }
    line.push_back(byte);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalCluster>> LocalCluster::Start(
    const LocalClusterOptions& options) {
  auto cluster = std::unique_ptr<LocalCluster>(new LocalCluster);
  int announce[2] = {-1, -1};
  if (pipe2(announce, O_CLOEXEC) != 0) {
    return Internal("pipe: %s", std::strerror(errno));
  }
  absl::Status spawned = cluster->Spawn(
      "the coordinator",
      {"coordinator", "--listen", "127.0.0.1:0", "--announce-fd", std::to_string(announce[1])},
      announce[1]);
  close(announce[1]);
  absl::StatusOr<std::string> port =
      spawned.ok() ? ReadLine(announce[0], options.start_timeout) : spawned;
  close(announce[0]);
  RETURN_IF_ERROR(port.status());
  cluster->coordinator_ = "127.0.0.1:" + *port;
  const auto start = [&](const char* role, const char* words, int count) -> absl::Status {
    for (int i = 0; i < count; ++i) {
      RETURN_IF_ERROR(cluster->Spawn(absl::StrFormat("%s process %d", words, i),
                                     {role, "--coordinator", cluster->coordinator_, "--listen",
                                      "127.0.0.1:0", "--rank", std::to_string(i), "--no-last-word"},
                                     -1));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(start("worker", "worker", options.workers));
  RETURN_IF_ERROR(start("ps", "server", options.servers));
  return cluster;
}

LocalCluster::~LocalCluster() {
  Reap();
  for (const Process& process : processes_) {
    if (!process.ended) {
      kill(process.pid, SIGTERM);
    }
  }
  End(std::chrono::seconds(2));
}

absl::Status LocalCluster::Spawn(std::string name, std::vector<std::string> arguments,
                                 int announce_fd) {
  arguments.insert(arguments.begin(), "ranklab");
  std::vector<char*> pointers;
  for (std::string& argument : arguments) {
    pointers.push_back(argument.data());
  }
  pointers.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    return Internal("fork of %s: %s", name, std::strerror(errno));
  }
  if (pid == 0) {
    Exec(pointers.data(), parent, announce_fd);
  }
  processes_.push_back({.name = std::move(name), .pid = pid});
  return absl::OkStatus();
}

void LocalCluster::Reap() {
  for (Process& process : processes_) {
    if (!process.ended && waitpid(process.pid, &process.wait_status, WNOHANG) == process.pid) {
      process.ended = true;
    }
  }
}

void LocalCluster::End(Nanos grace) {
  const Clock::time_point deadline = Clock::now() + grace;
  const auto all_ended = [this] {
    Reap();
    return std::all_of(processes_.begin(), processes_.end(),
                       [](const Process& process) { return process.ended; });
  };
  while (!all_ended() && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
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

std::string LocalCluster::HowOneEnded() {
  Reap();
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

}  // namespace ranklab::cli
