// Collectives of one process group over a Transport: what exchange_collective calls. Picks the
// schedule from the catalog, numbers the calls, sets their deadline.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include <absl/status/statusor.h>

#include "collectives/executor.h"
#include "collectives/schedule/schedule.h"

namespace ranklab::collectives {

struct CommunicatorOptions {
  std::string algorithm = "ring";  // a name of schedule/catalog.h
  int chunks_per_rank = 1;
  Nanos timeout = std::chrono::seconds(30);  // of one collective, wall time
};

struct CallTag {
  Step step = 0;
  int bucket = -1;
};

// All calls and callbacks on the loop. Calls must come in the same order on every rank; they run in
// that order and may overlap. May be destroyed while calls are under way; they go on.
class Communicator {
 public:
  // Errors: InvalidArgument, an algorithm that the catalog does not know, with the names it knows;
  // a group that does not have this transport's worker at my_rank, or has one twice; a timeout that
  // is not positive.
  static absl::StatusOr<std::unique_ptr<Communicator>> Make(const ExecutorDeps& deps,
                                                            const ProcessGroup& group,
                                                            const CommunicatorOptions& options);
  ~Communicator();

  // In place, over the group. `buffer` is host memory of shape (n), n equal on all ranks, and must
  // stay valid until `done` runs. A call that fails ends all others of the transport too: see
  // OnFailure. Errors: as Execute.
  void AllReduce(compute::TensorView buffer, compute::ReduceOp op, CallTag tag, DoneFn done);

  // In place: rank r ends with the reduction of block r, or starts with it. Block r is elements
  // [n r / P, n (r + 1) / P). The other blocks are unspecified after a reduce-scatter.
  void ReduceScatter(compute::TensorView buffer, compute::ReduceOp op, CallTag tag, DoneFn done);
  void AllGather(compute::TensorView buffer, CallTag tag, DoneFn done);

  // Runs as soon as a call fails, before its `done`, which comes only once the transport has let go
  // of the buffers. Must lead to an Abort of the transport; unless it is set, the communicator
  // aborts it at once with the call's error.
  void OnFailure(FailedFn failed);

  std::uint64_t next_sequence() const;

 private:
  class Core;
  explicit Communicator(std::shared_ptr<Core> core);

  std::shared_ptr<Core> core_;
};

}  // namespace ranklab::collectives
