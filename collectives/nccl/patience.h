// How a thread that waits for a GPU passes its time; tests have a clock of their own.
#pragma once

#include "core/event_loop.h"
#include "core/status_latch.h"

namespace ranklab::collectives::nccl {

class Patience {
 public:
  virtual ~Patience() = default;
  virtual Nanos Now() = 0;
  // Returns after `duration`, or as soon as the wait is over for another reason; then true.
  virtual bool Pause(Nanos duration) = 0;
};

// Until `aborted` is set: by the coordinator, on every rank of the generation.
class PatienceUntilAborted final : public Patience {
 public:
  PatienceUntilAborted(const EventLoop& loop, const StatusLatch& aborted)
      : loop_(loop), aborted_(aborted) {}
  Nanos Now() override { return loop_.Now(); }
  bool Pause(Nanos duration) override { return aborted_.SleepUnlessSet(duration); }

 private:
  const EventLoop& loop_;
  const StatusLatch& aborted_;
};

}  // namespace ranklab::collectives::nccl
