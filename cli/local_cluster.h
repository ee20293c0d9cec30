// A whole cluster on this machine: a coordinator, workers and parameter servers as processes of
// this program. Ends all of them, whatever happens; none outlives its parent.
#pragma once

#include <memory>
#include <string>

#include <absl/status/statusor.h>

#include "cli/child_processes.h"
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

  const std::string& coordinator() const { return coordinator_; }  // "127.0.0.1:40123"

  // As ChildProcesses.
  void End(Nanos grace) { processes_.End(grace); }
  std::string HowOneEnded() { return processes_.HowOneEnded(); }

 private:
  LocalCluster() = default;

  std::string coordinator_;
  ChildProcesses processes_;
};

}  // namespace ranklab::cli
