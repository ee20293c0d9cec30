// Processes of this machine that this one starts, waits for and ends. None outlives it: the kernel
// kills a child whose parent is gone.
#pragma once

#include <string>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <sys/types.h>

#include "core/units.h"

namespace ranklab::cli {

inline constexpr const char* kThisProgram = "/proc/self/exe";

struct Launch {
  std::string name;                    // "worker process 2", for messages
  std::string program = kThisProgram;  // a path, or a name to look up
  std::vector<std::string> arguments{};
  int stdin_fd = -1;  // becomes its standard input; -1: as this process's. Likewise standard output
  int stdout_fd = -1;
  int kept_fd = -1;  // stays open in it, under its number
};

class ChildProcesses {
 public:
  ChildProcesses() = default;
  ~ChildProcesses();  // asks whoever is left to end (SIGTERM), then End
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  // In a process group of its own: Ctrl-C is for the parent. A program that cannot be executed ends
  // with code 127. Errors: Internal, no process could be made.
  absl::Status Start(const Launch& launch);

  // Waits at most `grace` for the processes to end by themselves, then kills what is left.
  void End(Nanos grace);

  // "the coordinator was ended by signal 9 (Killed)" for a process that ended otherwise than by
  // itself with a code of the command line, unless End did it; empty if there is none within
  // `patience`.
  std::string HowOneEnded(Nanos patience = Nanos::zero());

 private:
  struct Process {
    std::string name;
    pid_t pid = 0;
    bool ended = false;
    bool killed_here = false;  // by End: says nothing about what went wrong
    int wait_status = 0;
  };

  void Reap();
  std::string HowOneOfTheReapedEnded() const;

  std::vector<Process> processes_;
};

// A pipe whose ends no child inherits unless its Launch says so. Errors: Internal.
struct Pipe {
  int read_fd = -1;
  int write_fd = -1;
};
absl::StatusOr<Pipe> MakePipe();

// The next line of `fd`, without its end, read byte by byte so that nothing behind it is taken.
// Errors: DeadlineExceeded, "waited 10 s for WHAT"; Unavailable, the other side closed it before.
absl::StatusOr<std::string> ReadLine(int fd, Nanos timeout, const std::string& what);

}  // namespace ranklab::cli
