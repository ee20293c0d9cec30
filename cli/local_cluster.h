// A whole cluster on this machine: a coordinator, workers and parameter servers as processes of
// this program. Ends all of them, whatever happens; none outlives its parent.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <absl/status/statusor.h>
#include <sys/types.h>

#include "core/units.h"

namespace ranklab::cli {

struct LocalClusterOptions {
  int workers = 1;
  int servers = 0;
  Nanos start_timeout = std::chrono::seconds(10);
};

class LocalCluster {
 public:
  // Starts the coordinator, waits for its port, starts the members. They join by themselves.
  // Errors: Unavailable, a process ended before it was up; DeadlineExceeded, by name.
  static absl::StatusOr<std::unique_ptr<LocalCluster>> Start(const LocalClusterOptions& options);
  ~LocalCluster();  // asks whoever is left to end (SIGTERM), then End

  const std::string& coordinator() const { return coordinator_; }  // "127.0.0.1:40123"

  // Waits at most `grace` for the processes to end by themselves, then kills what is left.
  void End(Nanos grace);

  // "the coordinator was ended by signal 9 (Killed)" for a process that ended otherwise than by
  // itself with a code of the command line, unless End did it; empty if there is none. Does not
  // wait.
  std::string HowOneEnded();

  struct Process {
    std::string name;  // "coordinator", "worker process 2"
    pid_t pid = 0;
    bool ended = false;
    bool killed_here = false;  // by End: says nothing about what went wrong
    int wait_status = 0;
  };
  const std::vector<Process>& processes() const { return processes_; }

 private:
  LocalCluster() = default;
  absl::Status Spawn(std::string name, std::vector<std::string> arguments, int announce_fd);
  void Reap();

  std::string coordinator_;
  std::vector<Process> processes_;
};

}  // namespace ranklab::cli
