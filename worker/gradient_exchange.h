// How a worker's gradients meet everybody else's, for its training thread. What happens on the loop
// is in exchange_machine.h.
#pragma once

#include <cstdint>
#include <string_view>

#include <absl/status/statusor.h>

#include "compute/tensor.h"
#include "core/units.h"

namespace ranklab::worker {

// Gradients of consecutive parameters, exchanged together once the last of them is ready.
struct Bucket {
  int index = 0;           // in the order the backward pass fills them
  int last_layer = 0;      // whose backward pass completes it
  std::int64_t begin = 0;  // elements [begin, end) of the flattened model
  std::int64_t end = 0;
  compute::TensorView gradients;   // shape (end - begin), float32
  compute::TensorView parameters;  // shape (end - begin), the same elements, float32
  compute::TensorView sent;        // the gradients as they travel: in the wire's dtype
};

enum class Outcome : std::uint8_t {
  kSummedGradients,    // the worker scales and applies its optimizer
  kUpdatedParameters,  // a server has applied it
};

struct StepExchange {
  Nanos exposed{};             // time the step waited, overlap taken out
  std::int64_t staleness = 0;  // observed; 0 for collectives
  double weight_sum = 0;       // kSummedGradients: of all ranks, what the gradients are divided by
  bool overflow = false;       // some rank saw Inf or NaN: every rank skips the step
};

class GradientExchange {
 public:
  virtual ~GradientExchange() = default;

  virtual std::string_view name() const = 0;  // "ps.ssp", "collective.ring", "nccl"
  virtual Outcome outcome() const = 0;

  // `weight` is what this rank's gradients of the step are worth (its samples or tokens): sums are
  // divided by the sum of weights over ranks, never by the world size.
  virtual void BeginStep(Step step, double weight) = 0;

  // Begins exchanging `bucket` and returns at once; in the last micro-batch of a step only. The
  // bucket must stay valid until FinishStep.
  virtual void Begin(Step step, Bucket& bucket) = 0;

  // Waits until every bucket begun in `step` is usable. `overflow`: this rank saw Inf or NaN.
  // Errors: Unavailable, a peer was lost; DeadlineExceeded; Aborted, the membership changed.
  virtual absl::StatusOr<StepExchange> FinishStep(Step step, bool overflow) = 0;

  // Has the run as a whole had its `steps` global batches? Synchronously that is this worker's own
  // count; asynchronously it is what all workers together have pushed.
  virtual bool Finished(Step step, Step steps) const = 0;

  // From any thread: a parameter server was lost, and `heir` goes on with its shard.
  virtual void ServerLost(Rank lost, Rank heir) = 0;

  // After the last step, before the barrier: this worker no longer holds others back.
  virtual absl::Status Leave() = 0;

  // After the barrier: the final parameters, equal on all workers, are in the model.
  virtual absl::Status FetchFinal() = 0;
};

}  // namespace ranklab::worker
