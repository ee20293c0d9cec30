// An exchange as a machine on the loop: what a live worker's training thread waits for
// (blocking_exchange.h) and a simulated worker goes on from (sim/simulated_worker.h). One
// implementation a file: exchange_collective, exchange_ps, exchange_none.
#pragma once

#include <string>
#include <string_view>

#include "core/event_loop.h"
#include "worker/gradient_exchange.h"

namespace ranklab::worker {

// All calls and callbacks on the loop. A `done` may run within the call that was given it; each
// runs exactly once. The machine must outlive its callbacks.
// Errors (through `done`): Unavailable, a peer was lost; DeadlineExceeded; Aborted, the membership
// changed.
class ExchangeMachine {
 public:
  virtual ~ExchangeMachine() = default;

  virtual std::string_view name() const = 0;  // "ps.ssp", "collective.ring"
  virtual Outcome outcome() const = 0;

  // `weight`: see GradientExchange::BeginStep. Before the step's first bucket, after the gradients
  // were zeroed.
  virtual void BeginStep(double weight) = 0;

  // Begins exchanging `bucket`; `done` once its memory is no longer used. It must stay valid until
  // then.
  virtual void Begin(Step step, const Bucket& bucket, DoneFn done) = 0;

  // After the step's last bucket; `done` once what the step needs beyond its buckets is here.
  virtual void EndStep(Step step, bool overflow, DoneFn done) = 0;

  // Of the step last ended, once every `done` of it has run; but for `exposed`, which is the
  // caller's to measure.
  virtual StepExchange Ended(Step step) const = 0;

  virtual bool Finished(Step step, Step steps) const = 0;  // as GradientExchange
  virtual void Leave(DoneFn done) = 0;
  virtual void FetchFinal(DoneFn done) = 0;

  // A parameter server was lost, and another has the replica of its shard. Gradients of a step stay
  // as they were begun until its `done` has run.
  virtual void ServerLost(Rank lost, Rank heir) = 0;

  // How long a step with so many buckets may take before it is given up, wall time.
  virtual Nanos PatienceWith(int buckets) const = 0;
  // For the message then: "the parameter servers: server 1 (pull of step 12)".
  virtual std::string WaitingFor() const = 0;
};

}  // namespace ranklab::worker
