// One rank of `ranklab collective`: a process that listens, is told where the others listen, and
// then runs one trial after the other, as told on its standard input.
#pragma once

#include "core/units.h"

namespace ranklab::cli {

struct RankProcessOptions {
  Rank rank = 0;
  bool shared_memory = false;   // bytes go through it
  bool checksums = false;       // over bodies, which within a host have none
  double timeout_seconds = 30;  // of one collective
  int spin_microseconds = 0;    // LiveLoop
};

// Says a line each: its port; "ready" once connected; the measurement of each trial. An error is a
// line that begins with '!', and ends it. Ends too when its standard input does.
// Returns the exit code.
int RunRankProcess(const RankProcessOptions& options);

}  // namespace ranklab::cli
