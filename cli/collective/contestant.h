// Whoever runs the trials of `ranklab collective`: ranklab itself, and its rivals, which take part
// in turn so that all meet the same machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "cli/collective/trial.h"
#include "core/units.h"

namespace ranklab::cli {

class Contestant {
 public:
  virtual ~Contestant() = default;

  virtual const std::string& name() const = 0;  // "Open MPI"

  // Empty, or why not: "gloo has no reduce_scatter".
  virtual std::string WhyNot(const Trial& trial) const = 0;

  // Requires: WhyNot(trial) is empty. Errors: Unavailable, a process failed or ended, by name;
  // DeadlineExceeded, by name.
  virtual absl::StatusOr<Measurement> Measure(const Trial& trial) = 0;
};

// How bytes go between ranks: through sockets, or through memory that both map.
enum class Way { kTcp, kSharedMemory };

struct ContestantOptions {
  int ranks = 2;
  Way way = Way::kTcp;
  bool checksums = false;
  double timeout_seconds = 30;
  int spin_microseconds = 0;  // of ranklab's loops; Open MPI always spins, gloo never
};

// Each starts its ranks as processes of this machine and returns once they are connected.
// Errors: as Measure; NotFound, a rival that is not installed or was not built, with the remedy.
absl::StatusOr<std::unique_ptr<Contestant>> StartRanklab(const ContestantOptions& options);
// Open MPI: its TCP or its shared memory path (vader).
absl::StatusOr<std::unique_ptr<Contestant>> StartOpenMpi(const ContestantOptions& options);
absl::StatusOr<std::unique_ptr<Contestant>> StartGloo(const ContestantOptions& options);

// How long a trial may take: every collective in it has `timeout_seconds`.
Nanos TimeOf(const Trial& trial, double timeout_seconds);

}  // namespace ranklab::cli
