// Processes that are told a line and answer with one. An answer that begins with '!' says what went
// wrong there.
#pragma once

#include <string>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "cli/child_processes.h"
#include "core/units.h"

namespace ranklab::cli {

class AnsweringProcesses {
 public:
  AnsweringProcesses() = default;
  ~AnsweringProcesses();  // closes what they are told through, which ends them; then kills the rest
  AnsweringProcesses(const AnsweringProcesses&) = delete;
  AnsweringProcesses& operator=(const AnsweringProcesses&) = delete;

  // Its standard output answers. Its standard input is told, unless `told` is false.
  // Errors: Internal, no process or pipe could be made.
  absl::Status Start(Launch launch, bool told = true);

  // Also told from now on. Takes the descriptor.
  void AlsoTell(int fd) { told_.push_back(fd); }

  // Requires: SIGPIPE is ignored. Errors: Unavailable, one of them is gone.
  absl::Status Tell(const std::string& line);

  // One line from each that answers, in the order of their start. Once one has failed or ended, the
  // others have two seconds to say what they know; the error names the one that ended or does not
  // speak before those that complain about it.
  // Errors: Unavailable, one has failed or ended; DeadlineExceeded, those that do not answer.
  absl::StatusOr<std::vector<std::string>> Hear(Nanos timeout);

 private:
  struct Speaker {
    std::string name;
    int fd = -1;
    std::string heard{};   // bytes
    std::string answer{};  // line
    bool answered = false;
    bool closed = false;
  };

  bool Read(Speaker& speaker);
  absl::Status Verdict(bool failed, Nanos waited);

  ChildProcesses processes_;
  std::vector<int> told_;
  std::vector<Speaker> speakers_;
};

}  // namespace ranklab::cli
