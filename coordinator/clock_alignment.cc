#include "coordinator/clock_alignment.h"

#include <algorithm>

#include "core/check.h"

namespace ranklab::coordinator {

ClockAlignment::ClockAlignment(ClockAlignmentOptions options) : options_(options) {
  RANKLAB_CHECK(options.window >= 1 && options.drift >= 0, "window %d, drift %g", options.window,
                options.drift);
}

void ClockAlignment::Add(Nanos asked, Nanos read, Nanos answered) {
  if (answered < asked) {
    return;
  }
  const Nanos half_trip = (answered - asked + Nanos(1)) / 2;  // rounded up: a bound stays one
  samples_.push_back(
      {.taken = answered, .offset = read - (asked + half_trip), .half_trip = half_trip});
  if (samples_.size() > static_cast<std::size_t>(options_.window)) {
    samples_.pop_front();
  }
}

std::optional<ClockOffset> ClockAlignment::At(Nanos now) const {
  std::optional<ClockOffset> best;
  for (const Sample& sample : samples_) {
    const Nanos age = std::max(Nanos(0), now - sample.taken);
    const auto drifted =
        Nanos(static_cast<std::int64_t>(static_cast<double>(age.count()) * options_.drift));
    const Nanos residual = sample.half_trip + drifted;
    if (!best || residual < best->residual) {
      best = ClockOffset{.offset = sample.offset, .residual = residual};
    }
  }
  return best;
}

}  // namespace ranklab::coordinator
