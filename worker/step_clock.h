// Holds the work of a step to its modelled time. Every layer is really computed; then the thread
// waits until the instant at which the modelled device would have finished it, counted from the
// modelled start of the step, before its bucket may begin. So overlap is the modelled one. Work
// that really ran longer is counted as lateness and caught up by shorter holds.
#pragma once

#include "core/event_loop.h"
#include "core/status_latch.h"
#include "core/units.h"
#include "worker/rank_faults.h"

namespace ranklab::worker {

struct StepClockOptions {
  bool modelled = false;    // false: native, work takes what it takes; only stretches are added
  double time_scale = 1.0;  // modelled time x scale = wall time
};

// For the training thread.
class StepClock {
 public:
  // `aborted` ends every hold at once.
  StepClock(const EventLoop& loop, const StepClockOptions& options, const StatusLatch& aborted);

  // The step begins where the last one ended in modelled time, if that was at most 1 ms ago: what
  // is done between the steps is not the modelled device's work.
  void BeginStep();

  // Work that takes `modelled` on the device has been done since the last call; returns once its
  // modelled end, stretched, has come. Natively the stretch applies to the time it really took.
  void Hold(Nanos modelled, const Stretch& stretch);

  // Modelled time goes on from now: after a wait for the exchange.
  void Resume();

  // Sleeps for a modelled duration, natively a real one.
  void Pause(Nanos modelled);

  Nanos Now() const { return loop_.Now(); }

  // Of the step: the most that work ran past its modelled end. 0 natively.
  Nanos lateness() const { return lateness_; }

 private:
  Nanos Dilated(Nanos modelled) const;
  void SleepUntil(Nanos when);

  const EventLoop& loop_;
  const StepClockOptions options_;
  const StatusLatch& aborted_;
  Nanos work_begins_{};   // end of the last hold: the work since then is what a Hold is about
  Nanos modelled_now_{};  // on the loop's clock
  Nanos lateness_{};
};

}  // namespace ranklab::worker
