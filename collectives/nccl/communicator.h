// One rank's communicator on NCCL: never blocks without a deadline, and turns what NCCL says, or
// fails to say, into a Status that names the rank, the call and what was waited for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <absl/functional/any_invocable.h>
#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include "collectives/nccl/api.h"
#include "collectives/nccl/patience.h"
#include "compute/tensor.h"
#include "core/units.h"

namespace ranklab::collectives::nccl {

struct CommunicatorOptions {
  int ranks = 1;
  Rank rank = 0;
  Stream stream = nullptr;                   // all calls are queued on it, in order
  Nanos timeout = std::chrono::seconds(30);  // of the initialisation and of each wait, wall time
};

// For one thread. After a failure every call fails, and what is queued still spins on the device:
// the owner either aborts, or shrinks. NCCL tells the other ranks nothing, so whoever owns the
// ranks must end the wait of them all (Patience::Pause). There is no average: sum, and scale by the
// sum of weights. (NCCL's own loses the last elements of a one-rank bf16 average up to 2.29.6.)
//
// Errors of every call: Unavailable, NCCL lost a peer; DeadlineExceeded; Aborted, the wait was
// ended from outside; the error of the call that failed first; InvalidArgument and
// FailedPrecondition, NCCL refuses the arguments or their order (two ranks on one device among
// them); Internal, CUDA or NCCL failed.
class Communicator {
 public:
  // All ranks of the group at once. `api` and `patience` must outlive it.
  static absl::StatusOr<std::unique_ptr<Communicator>> Make(Api& api, Patience& patience,
                                                            const UniqueId& id,
                                                            const CommunicatorOptions& options);
  // Aborts, unless Finish has been called.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Queued on the stream; all ranks in the same order. Views are of device memory, shape (n), of
  // one dtype; `send` and `receive` are equal, or do not overlap. Requires: the element counts
  // match: `whole` views have n elements on all ranks, a `block` n / ranks.
  // In place, ReduceScatter and AllGather have the block at element rank * n / ranks.
  absl::Status AllReduce(compute::TensorView send, compute::TensorView receive,
                         compute::ReduceOp op);
  absl::Status ReduceScatter(compute::TensorView whole, compute::TensorView block,
                             compute::ReduceOp op);
  absl::Status AllGather(compute::TensorView block, compute::TensorView whole);
  absl::Status Broadcast(compute::TensorView send, compute::TensorView receive, Rank root);
  absl::Status Reduce(compute::TensorView send, compute::TensorView receive, compute::ReduceOp op,
                      Rank root);
  absl::Status Send(compute::TensorView view, Rank to);
  absl::Status Receive(compute::TensorView view, Rank from);

  // What `calls` queues becomes one operation: sends and receives that must not wait for one
  // another. Do not nest.
  absl::Status Group(absl::FunctionRef<absl::Status()> calls);

  // Until `finished` says that the stream has got there, or NCCL reports an error. `finished` does
  // not block: cudaEventQuery. `what` for the messages: "bucket 3 of step 7".
  using FinishedFn = absl::FunctionRef<absl::StatusOr<bool>()>;
  absl::Status Wait(FinishedFn finished, const std::string& what);

  // Nothing follows: flushes, then frees. Of all ranks.
  absl::Status Finish();

  // Ends what is queued, at once. Later calls fail, with `why` if nothing failed before.
  void Abort(const absl::Status& why);

  // The survivors' communicator after a rank was lost: called by each of them with the same `lost`
  // ranks, whether or not a call has failed here, but not after Abort (FailedPrecondition). Ranks
  // are numbered anew in the old order. What was queued is ended, and this one aborted.
  absl::StatusOr<std::unique_ptr<Communicator>> Shrink(std::span<const Rank> lost);

  Rank rank() const { return options_.rank; }
  int ranks() const { return options_.ranks; }
  std::int64_t calls() const { return calls_; }  // queued so far
  const absl::Status& failure() const { return failure_; }

 private:
  Communicator(Api& api, Patience& patience, const CommunicatorOptions& options);

  absl::Status BecomeReady(Result begun, const std::string& what);
  absl::Status Queue(std::string what, absl::FunctionRef<Result()> call);
  absl::Status Settle(const std::string& what);
  // `watched`: whose state NCCL is asked for, or null.
  absl::Status PollUntil(Comm watched, FinishedFn done, const std::string& what);
  absl::Status Fail(absl::Status why);
  absl::Status Verdict(Result result, const std::string& what) const;
  std::string Me() const;

  Api& api_;
  Patience& patience_;
  const CommunicatorOptions options_;
  Comm comm_ = nullptr;
  std::int64_t calls_ = 0;
  bool in_group_ = false;
  absl::Status failure_;
};

}  // namespace ranklab::collectives::nccl
