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
  // A name of schedule/catalog.h. Collectives that do not know it take the catalog's first of
  // theirs.
  std::string algorithm = "ring";
  // 0: by size, a power of two, so that a rank's block travels in pieces of 128 to 512 KiB: one is
  // reduced, still in the cache, while the next arrives.
  int chunks_per_rank = 1;
  int channels = 2;  // as BuildOptions, also below
  int ranks_per_node = 0;
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
  // Errors: InvalidArgument, an algorithm that no collective of the catalog knows, with the
  // all-reduces that there are; options that it cannot be built with; a group that does not have
  // this transport's worker at my_rank, or has one twice; a timeout that is not positive.
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

  // In place, `root` a rank of the group, the same on all. Broadcast: all end with the root's
  // buffer. Reduce: the root ends with the reduction, the others' buffers are unspecified. Gather:
  // the root ends with block r of each rank r. Scatter: rank r ends with the root's block r. Other
  // blocks are unspecified after a gather (but at the root) and a scatter. Errors: InvalidArgument,
  // a root outside of the group.
  void Broadcast(compute::TensorView buffer, Rank root, CallTag tag, DoneFn done);
  void Reduce(compute::TensorView buffer, compute::ReduceOp op, Rank root, CallTag tag,
              DoneFn done);
  void Gather(compute::TensorView buffer, Rank root, CallTag tag, DoneFn done);
  void Scatter(compute::TensorView buffer, Rank root, CallTag tag, DoneFn done);

  // Block j of `input` goes to rank j, block i of `output` comes from rank i; the two must not
  // overlap. P blocks of equal size, or as `counts` say: counts in elements, one a rank; what rank
  // i sends to j, rank j must expect from i. The counts are read during the call only.
  void AllToAll(compute::TensorView input, compute::TensorView output, CallTag tag, DoneFn done);
  void AllToAllV(const CallBuffers& buffers, CallTag tag, DoneFn done);

  // Runs `done` once every rank has called it.
  void Barrier(CallTag tag, DoneFn done);

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
