#include "collectives/nccl/communicator.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/seconds.h"
#include "core/status.h"

namespace ranklab::collectives::nccl {
namespace {

using compute::TensorView;

// A wait that ends soon is not prolonged by a sleep; a long one leaves the core to others.
constexpr Nanos kEager = std::chrono::milliseconds(2);
constexpr Nanos kPause = std::chrono::microseconds(100);

Transfer Between(const TensorView& send, const TensorView& receive, std::int64_t count) {
  RANKLAB_CHECK(send.dtype == receive.dtype);
  return {.send = send.data, .receive = receive.data, .count = count, .dtype = send.dtype};
}

void CheckBlock(const TensorView& whole, const TensorView& block, int ranks) {
  RANKLAB_CHECK(whole.element_count() == block.element_count() * ranks,
                "%d elements in %d blocks of %d", whole.element_count(), ranks,
                block.element_count());
}

absl::StatusCode CodeOf(Result result) {
  switch (result) {
    case Result::kRemoteError:
    case Result::kSystemError:  // of a socket, as a rule: its other end is gone
      return absl::StatusCode::kUnavailable;
    case Result::kInvalidArgument:
      return absl::StatusCode::kInvalidArgument;
    case Result::kInvalidUsage:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

Communicator::Communicator(Api& api, Patience& patience, const CommunicatorOptions& options)
    : api_(api), patience_(patience), options_(options) {}

Communicator::~Communicator() { Abort(Aborted("the communicator is gone")); }

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Make(
    Api& api, Patience& patience, const UniqueId& id, const CommunicatorOptions& options) {
  RANKLAB_CHECK(options.rank >= 0 && options.rank < options.ranks, "rank %d of %d", options.rank,
                options.ranks);
  auto made = std::unique_ptr<Communicator>(new Communicator(api, patience, options));
  const Result begun = api.Init(made->comm_, options.ranks, id, options.rank);
  RETURN_IF_ERROR(made->BecomeReady(
      begun, absl::StrFormat("NCCL's initialisation by all %d ranks", options.ranks)));
  return made;
}

// A communicator that NCCL has made of other ranks than ours would sum the wrong gradients.
absl::Status Communicator::BecomeReady(Result begun, const std::string& what) {
  if (begun != Result::kSuccess && begun != Result::kInProgress) {
    return Fail(Verdict(begun, what));
  }
  RETURN_IF_ERROR(Settle(what));
  int ranks = 0;
  Rank rank = 0;
  if (const Result told = api_.Shape(comm_, ranks, rank); told != Result::kSuccess) {
    return Fail(Verdict(told, what));
  }
  if (ranks != options_.ranks || rank != options_.rank) {
    return Fail(Internal("%s: NCCL made this rank %d of %d in %s", Me(), rank, ranks, what));
  }
  return absl::OkStatus();
}

absl::Status Communicator::AllReduce(TensorView send, TensorView receive, compute::ReduceOp op) {
  return Queue("all-reduce", [&] {
    return api_.AllReduce(Between(send, receive, send.element_count()), op, comm_, options_.stream);
  });
}

absl::Status Communicator::ReduceScatter(TensorView whole, TensorView block, compute::ReduceOp op) {
  CheckBlock(whole, block, options_.ranks);
  return Queue("reduce-scatter", [&] {
    return api_.ReduceScatter(Between(whole, block, block.element_count()), op, comm_,
                              options_.stream);
  });
}

absl::Status Communicator::AllGather(TensorView block, TensorView whole) {
  CheckBlock(whole, block, options_.ranks);
  return Queue("all-gather", [&] {
    return api_.AllGather(Between(block, whole, block.element_count()), comm_, options_.stream);
  });
}

absl::Status Communicator::Broadcast(TensorView send, TensorView receive, Rank root) {
  return Queue("broadcast", [&] {
    return api_.Broadcast(Between(send, receive, send.element_count()), root, comm_,
                          options_.stream);
  });
}

absl::Status Communicator::Reduce(TensorView send, TensorView receive, compute::ReduceOp op,
                                  Rank root) {
  return Queue("reduce", [&] {
    return api_.Reduce(Between(send, receive, send.element_count()), op, root, comm_,
                       options_.stream);
  });
}

absl::Status Communicator::Send(TensorView view, Rank to) {
  return Queue(absl::StrFormat("send to rank %d", to), [&] {
    return api_.Send(Between(view, view, view.element_count()), to, comm_, options_.stream);
  });
}

absl::Status Communicator::Receive(TensorView view, Rank from) {
  return Queue(absl::StrFormat("receive from rank %d", from), [&] {
    return api_.Receive(Between(view, view, view.element_count()), from, comm_, options_.stream);
  });
}

absl::Status Communicator::Group(absl::FunctionRef<absl::Status()> calls) {
  RANKLAB_CHECK(!in_group_, "a group within a group");
  RETURN_IF_ERROR(failure_);
  if (const Result started = api_.GroupStart(); started != Result::kSuccess) {
    return Fail(Verdict(started, "the start of a group"));
  }
  in_group_ = true;
  const absl::Status queued = calls();
  in_group_ = false;
  // Also after an error: NCCL counts starts and ends.
  const Result ended = api_.GroupEnd();
  RETURN_IF_ERROR(queued);
  const std::string what = absl::StrFormat("the group that ends with call %d", calls_);
  if (ended != Result::kSuccess && ended != Result::kInProgress) {
    return Fail(Verdict(ended, what));
  }
  return Settle(what);
}

absl::Status Communicator::Queue(std::string what, absl::FunctionRef<Result()> call) {
  RETURN_IF_ERROR(failure_);
  what = absl::StrFormat("%s (call %d)", what, ++calls_);
  const Result queued = call();
  if (queued != Result::kSuccess && queued != Result::kInProgress) {
    return Fail(Verdict(queued, what));
  }
  // Within a group nothing happens before its end.
  return in_group_ ? absl::OkStatus() : Settle("the queueing of " + what);
}

absl::Status Communicator::Settle(const std::string& what) {
  return PollUntil(
      comm_, [] { return absl::StatusOr<bool>(true); }, what);
}

absl::Status Communicator::Wait(FinishedFn finished, const std::string& what) {
  RETURN_IF_ERROR(failure_);
  return PollUntil(comm_, finished, what);
}

absl::Status Communicator::PollUntil(Comm watched, FinishedFn done, const std::string& what) {
  const Nanos begins = patience_.Now();
  while (true) {
    Result state = Result::kSuccess;
    if (watched != nullptr) {
      const Result told = api_.AsyncError(watched, state);
      state = told == Result::kSuccess ? state : told;
    }
    if (state != Result::kSuccess && state != Result::kInProgress) {
      return Fail(Verdict(state, what));
    }
    if (state == Result::kSuccess) {
      const absl::StatusOr<bool> is_done = done();
      if (!is_done.ok()) {
        return Fail(Annotate(is_done.status(), absl::StrFormat("%s, in %s", Me(), what)));
      }
      if (*is_done) {
        return absl::OkStatus();
      }
    }
    const Nanos waited = patience_.Now() - begins;
    if (waited >= options_.timeout) {
      return Fail(
          DeadlineExceeded("%s waited %.1f s for %s%s", Me(), SecondsOf(waited), what,
                           state == Result::kInProgress
                               ? ", which NCCL still calls in progress"
                               : ", which the device has not got to: some rank is missing"));
    }
    if (patience_.Pause(waited < kEager ? Nanos::zero() : kPause)) {
      return Fail(Aborted("%s was told to give up %s", Me(), what));
    }
  }
}

absl::Status Communicator::Finish() {
  RETURN_IF_ERROR(failure_);
  const std::string what = "the end of the communicator";
  if (const Result begun = api_.Finalize(comm_);
      begun != Result::kSuccess && begun != Result::kInProgress) {
    return Fail(Verdict(begun, what));
  }
  RETURN_IF_ERROR(Settle(what));
  const Result destroyed = api_.Destroy(std::exchange(comm_, nullptr));
  failure_ = FailedPrecondition("%s: the communicator is finished", Me());
  return destroyed == Result::kSuccess ? absl::OkStatus() : Verdict(destroyed, what);
}

void Communicator::Abort(const absl::Status& why) {
  if (failure_.ok()) {
    failure_ = Annotate(why, Me());
  }
  if (Comm comm = std::exchange(comm_, nullptr); comm != nullptr) {
    api_.Abort(comm);
  }
}

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Shrink(std::span<const Rank> lost) {
  if (comm_ == nullptr) {
    return FailedPrecondition("%s: an aborted communicator cannot be shrunk", Me());
  }
  std::vector<Rank> excluded(lost.begin(), lost.end());
  CommunicatorOptions options = options_;
  for (const Rank rank : excluded) {
    RANKLAB_CHECK(rank != options_.rank, "rank %d excludes itself", rank);
    options.ranks -= 1;
    options.rank -= rank < options_.rank ? 1 : 0;
  }
  auto smaller = std::unique_ptr<Communicator>(new Communicator(api_, patience_, options));
  const std::string what = absl::StrFormat("the shrink to %d ranks", options.ranks);
  const Result begun = api_.Shrink(comm_, excluded, smaller->comm_);
  absl::Status ready;
  if (begun == Result::kSuccess || begun == Result::kInProgress) {
    // Not watching the old one: what made it fail may still be its state.
    ready = PollUntil(
        nullptr, [&] { return absl::StatusOr<bool>(smaller->comm_ != nullptr); }, what);
  }
  if (ready.ok()) {
    ready = smaller->BecomeReady(begun, what);
  }
  Abort(Aborted("it was shrunk"));
  RETURN_IF_ERROR(ready);
  return smaller;
}

absl::Status Communicator::Fail(absl::Status why) {
  failure_ = std::move(why);
  return failure_;
}

absl::Status Communicator::Verdict(Result result, const std::string& what) const {
  std::string said = comm_ == nullptr ? "" : api_.LastError(comm_);
  const bool duplicate = said.find("Duplicate GPU") != std::string::npos;
  return absl::Status(
      CodeOf(result),
      absl::StrFormat(
          "%s: %s in %s%s%s%s", Me(), NameOf(result), what, said.empty() ? "" : ": ", said,
          duplicate ? "; give each rank a device, or set cluster.shared_gpu: true" : ""));
}

std::string Communicator::Me() const {
  return absl::StrFormat("rank %d of %d", options_.rank, options_.ranks);
}

}  // namespace ranklab::collectives::nccl
