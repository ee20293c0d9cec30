#include "worker/step_clock.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace ranklab::worker {
namespace {

// Between steps this program sends rows and counts bytes, which the modelled device does not. As
// much of it is hidden; longer gaps, such as a stopped process, are not caught up with.
constexpr Nanos kForgiven = std::chrono::milliseconds(1);

Nanos Times(Nanos duration, double factor) {
  return Nanos(std::llround(static_cast<double>(duration.count()) * factor));
}

}  // namespace

StepClock::StepClock(const EventLoop& loop, const StepClockOptions& options,
                     const StatusLatch& aborted)
    : loop_(loop), options_(options), aborted_(aborted) {}

Nanos StepClock::Dilated(Nanos modelled) const { return Times(modelled, options_.time_scale); }

void StepClock::SleepUntil(Nanos when) {
  if (const Nanos now = loop_.Now(); when > now) {
    aborted_.SleepUnlessSet(when - now);
  }
}

void StepClock::BeginStep() {
  work_begins_ = loop_.Now();
  modelled_now_ = std::max(modelled_now_, work_begins_ - kForgiven);
  lateness_ = Nanos::zero();
}

void StepClock::Hold(Nanos modelled, const Stretch& stretch) {
  const Nanos now = loop_.Now();
  if (options_.modelled) {
    modelled_now_ += Dilated(stretch.Of(modelled));
    lateness_ = std::max(lateness_, now - modelled_now_);
    SleepUntil(modelled_now_);
  } else if (!stretch.none()) {
    SleepUntil(now + Times(now - work_begins_, stretch.factor - 1.0) + Dilated(stretch.extra));
  }
  work_begins_ = loop_.Now();
}

void StepClock::Resume() {
  work_begins_ = loop_.Now();
  modelled_now_ = std::max(modelled_now_, work_begins_);
}

void StepClock::Pause(Nanos modelled) {
  SleepUntil(loop_.Now() + Dilated(modelled));
  Resume();
}

}  // namespace ranklab::worker
