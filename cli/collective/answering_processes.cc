#include "cli/collective/answering_processes.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "core/status.h"

namespace ranklab::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Nanos kLastWords = std::chrono::seconds(2);
constexpr Nanos kToEnd = std::chrono::seconds(2);
// A process closes its streams a moment before it can be asked how it ended.
constexpr Nanos kToBeReaped = std::chrono::milliseconds(200);

}  // namespace

AnsweringProcesses::~AnsweringProcesses() {
  for (const int fd : told_) {
    close(fd);
  }
  processes_.End(kToEnd);
  for (const Speaker& speaker : speakers_) {
    close(speaker.fd);
  }
}

absl::Status AnsweringProcesses::Start(Launch launch, bool told) {
  ASSIGN_OR_RETURN(const Pipe answers, MakePipe());
  speakers_.push_back({.name = launch.name, .fd = answers.read_fd});
  launch.stdout_fd = answers.write_fd;
  absl::Status started;
  if (told) {
    const absl::StatusOr<Pipe> commands = MakePipe();
    started = commands.status();
    if (started.ok()) {
      told_.push_back(commands->write_fd);
      launch.stdin_fd = commands->read_fd;
    }
  } else {
    launch.stdin_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  }
  if (started.ok()) {
    started = processes_.Start(launch);
  }
  close(answers.write_fd);
  close(launch.stdin_fd);
  return started;
}

absl::Status AnsweringProcesses::Tell(const std::string& line) {
  const std::string bytes = line + "\n";
  for (const int fd : told_) {
    // At once: a line is shorter than what a pipe holds, and each is answered before the next.
    if (write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
      return Verdict(/*failed=*/true, Nanos::zero());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> AnsweringProcesses::Hear(Nanos timeout) {
  const Clock::time_point begin = Clock::now();
  Clock::time_point deadline = begin + timeout;
  bool failed = false;
  while (true) {
    std::vector<pollfd> waiting;
    std::vector<Speaker*> awaited;
    for (Speaker& speaker : speakers_) {
      if (!speaker.answered && !speaker.closed) {
        waiting.push_back({.fd = speaker.fd, .events = POLLIN, .revents = 0});
        awaited.push_back(&speaker);
      }
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (awaited.empty() || left <= 0) {
      break;
    }
    const int ready = poll(waiting.data(), waiting.size(), static_cast<int>(left));
    for (std::size_t i = 0; ready > 0 && i < awaited.size(); ++i) {
      if (waiting[i].revents != 0 && !Read(*awaited[i]) && !failed) {
        failed = true;
        deadline = std::min(deadline, Clock::now() + kLastWords);
      }
    }
  }
  std::vector<std::string> answers;
  for (const Speaker& speaker : speakers_) {
    failed |= speaker.closed;
    if (speaker.answered) {
      answers.push_back(speaker.answer);
    }
  }
  if (failed || answers.size() < speakers_.size()) {
    return Verdict(failed, Clock::now() - begin);
  }
  for (Speaker& speaker : speakers_) {
    speaker.answered = false;
  }
  return answers;
}

// False: the speaker is gone, or told of an error.
bool AnsweringProcesses::Read(Speaker& speaker) {
  char bytes[4096];
  const ssize_t got = read(speaker.fd, bytes, sizeof(bytes));
  if (got < 0 && errno == EINTR) {
    return true;
  }
  if (got <= 0) {
    speaker.closed = true;
    return false;
  }
  speaker.heard.append(bytes, static_cast<std::size_t>(got));
  if (const std::size_t end = speaker.heard.find('\n'); end != std::string::npos) {
    speaker.answer = speaker.heard.substr(0, end);
    speaker.heard.erase(0, end + 1);
    speaker.answered = true;
  }
  return !speaker.answer.starts_with('!');
}

absl::Status AnsweringProcesses::Verdict(bool failed, Nanos waited) {
  std::string silent;
  std::string complaint;
  bool closed = false;
  for (const Speaker& speaker : speakers_) {
    closed |= speaker.closed;
    if (!speaker.answered && !speaker.closed) {
      silent += (silent.empty() ? "" : ", ") + speaker.name;
    } else if (speaker.answered && speaker.answer.starts_with('!') && complaint.empty()) {
      complaint = speaker.name + ": " + speaker.answer.substr(1);
    }
  }
  if (!failed) {
    return DeadlineExceeded("waited %.0f s for %s", static_cast<double>(waited.count()) * 1e-9,
                            silent);
  }
  std::string verdict = processes_.HowOneEnded(closed ? kToBeReaped : Nanos::zero());
  if (verdict.empty() && !silent.empty()) {
    verdict = silent + " does not answer";
  }
  if (verdict.empty() && complaint.empty()) {
    verdict = "a process ended early";
  }
  return Unavailable("%s%s%s", verdict, verdict.empty() || complaint.empty() ? "" : "; ",
                     complaint);
}

}  // namespace ranklab::cli
