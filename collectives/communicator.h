// Collectives of one process group over a Transport: what exchange_collective calls. Picks the
// schedule from the catalog, numbers the calls, sets their deadline.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "collectives/executor.h"
#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

struct CommunicatorOptions {
  std::string algorithm = "ring";  // a name of schedule/catalog.h
  int chunks_per_rank = 1;
  Nanos timeout{};  // of one collective, wall time
};

struct CallTag {
  Step step = 0;
  int bucket = -1;
};

// All calls and callbacks on the loop. Calls must come in the same order on every rank; they run in
// that order and may overlap.
class Communicator {
 public:
  // Errors: InvalidArgument, an algorithm that the catalog does not know, with the nearest names.
  static absl::StatusOr<std::unique_ptr<Communicator>> Make(const ExecutorDeps& deps,
                                                            const ProcessGroup& group,
                                                            const CommunicatorOptions& options);

  // In place, over the group. `buffer` is shape (n) and must stay valid until `done` runs.
  // Errors: as Execute.
  void AllReduce(compute::TensorView buffer, compute::ReduceOp op, CallTag tag, DoneFn done);

  // In place: rank r ends with the reduction of block r, or starts with it. Block r is elements
  // [n r / P, n (r + 1) / P).
  void ReduceScatter(compute::TensorView buffer, compute::ReduceOp op, CallTag tag, DoneFn done);
  void AllGather(compute::TensorView buffer, CallTag tag, DoneFn done);

  std::uint64_t next_sequence() const { return next_sequence_; }

 private:
  Communicator(const ExecutorDeps& deps, const ProcessGroup& group,
               const CommunicatorOptions& options);
  void Run(Collective collective, compute::TensorView buffer, compute::ReduceOp op, CallTag tag,
           DoneFn done);

  ExecutorDeps deps_;
  ProcessGroup group_;
  CommunicatorOptions options_;
  std::map<Collective, Schedule> schedules_;
  std::uint64_t next_sequence_ = 1;
};

}  // namespace ranklab::collectives
