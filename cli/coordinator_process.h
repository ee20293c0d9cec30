// The coordinator as a process.
#pragma once

#include <string>

namespace ranklab::cli {

struct CoordinatorProcessOptions {
  std::string listen = "0.0.0.0:7070";
  bool once = false;       // end with the lab's exit code
  bool keep_pool = false;  // a lost member ends the lab and not every process
  int announce_fd = -1;    // where to write the port and a newline once it listens
};

int RunCoordinatorProcess(const CoordinatorProcessOptions& options);

}  // namespace ranklab::cli
