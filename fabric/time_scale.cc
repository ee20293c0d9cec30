#include "fabric/time_scale.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace ranklab::fabric {
namespace {

// Compute and exchange were measured one after the other; in a step they meet on the same cores.
constexpr double kHeadroom = 2.0;
// A thread wakes up to a millisecond late on a busy machine; that must be little against a step.
constexpr double kStepSeconds = 0.020;
// Was measured among all the others already; a median is kept if most messages are quicker.
constexpr double kLatencyHeadroom = 1.5;
// But natively it also queued behind bodies that a slower network would not have sent yet, so it
// asks for at most this many times what compute and exchange ask for.
constexpr double kLatencyMost = 4.0;

double Least(const RealAndModelled& part, double headroom) {
  RANKLAB_CHECK(part.real_seconds >= 0 && part.modelled_seconds >= 0);
  return part.modelled_seconds > 0 ? headroom * part.real_seconds / part.modelled_seconds : 0;
}
// A scale that is a nice number but for rounding is that number.
constexpr double kRounding = 1e-9;

}  // namespace

double RoundUpToNiceScale(double scale) {
  RANKLAB_CHECK(std::isfinite(scale));
  for (double decade = 1;; decade *= 10) {
    for (const double digit : {1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0}) {
      if (digit * decade >= scale * (1 - kRounding)) {
        return digit * decade;
      }
    }
  }
}

double ChooseTimeScale(const TimeScaleInputs& inputs) {
  const double bodies = std::max({1.0, Least(inputs.compute, kHeadroom),
                                  Least({kStepSeconds, inputs.compute.modelled_seconds}, 1.0),
                                  Least(inputs.exchange, kHeadroom)});
  const double messages = Least(inputs.latency, kLatencyHeadroom);
  const double scale = std::max(bodies, std::min(messages, kLatencyMost * bodies));
  return RoundUpToNiceScale(scale);
}

}  // namespace ranklab::fabric
